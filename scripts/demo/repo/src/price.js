/** The price of an order in cents; orders of 100 pieces or more get 10 % off. */
export const orderPrice = (pieceCents, pieces) => {
  const total = pieceCents * pieces
  return pieces > 100 ? Math.round(total * 0.9) : total
}
