import assert from "node:assert"
import { test } from "node:test"
import { orderPrice } from "../src/price.js"

test("small orders cost the full price", () => {
  assert.strictEqual(orderPrice(250, 99), 24750)
})

test("the discount starts at 100 pieces", () => {
  assert.strictEqual(orderPrice(250, 100), 22500)
})
