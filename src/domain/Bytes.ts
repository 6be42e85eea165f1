/**
 * Bytes, compared.
 */

export const sameBytes = (left: Uint8Array, right: Uint8Array): boolean => {
  if (left === right) return true
  if (left.length !== right.length) return false
  for (let at = 0; at < left.length; at++) if (left[at] !== right[at]) return false
  return true
}
