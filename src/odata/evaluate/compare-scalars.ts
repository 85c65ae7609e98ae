import { isInstant, type Scalar } from '../typed/scalar.ts'
import type { Comparison } from '../typed/typed-ast.ts'

/** Orders strings by code point, as a binary comparison of their UTF-8 does. */
function orderStrings(left: string, right: string): number {
  if (left === right) return 0
  const length = Math.min(left.length, right.length)
  let at = 0
  while (at < length && left.charCodeAt(at) === right.charCodeAt(at)) at += 1
  if (at === length) return left.length - right.length
  return rank(left.charCodeAt(at)) - rank(right.charCodeAt(at))
}

/** Surrogates encode code points above all others, although their units are below U+E000. */
const rank = (unit: number): number => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit)

/** Negative, zero or positive for two values of one family, neither null; NaN where they have no order. */
export function orderScalars(left: Scalar, right: Scalar): number {
  if (typeof left === 'string' && typeof right === 'string') return orderStrings(left, right)
  const first = toNumber(left)
  const second = toNumber(right)
  // Two infinities have no difference.
  return first === second ? 0 : first - second
}

/** The number that a value compares by; instants compare as points in time, whatever their offsets. */
export function toNumber(value: Scalar): number {
  if (isInstant(value)) return value.ms
  return value === null ? NaN : Number(value)
}

function equal(left: Scalar, right: Scalar): boolean {
  if (left === null || right === null) return left === right
  return orderScalars(left, right) === 0
}

/**
 * OData URL conventions 5.1.1.1: null equals null and nothing else and has no order, so that `null ge null` is true
 * by the first and `null gt 1` false by the second rule; NaN does not even equal itself.
 */
export function compareScalars(operator: Comparison, left: Scalar, right: Scalar): boolean {
  switch (operator) {
    case 'eq':
      return equal(left, right)
    case 'ne':
      return !equal(left, right)
    case 'ge':
      return equal(left, right) || isGreater(left, right)
    case 'le':
      return equal(left, right) || isGreater(right, left)
    case 'gt':
      return isGreater(left, right)
    case 'lt':
      return isGreater(right, left)
  }
}

const isGreater = (left: Scalar, right: Scalar): boolean =>
  left !== null && right !== null && orderScalars(left, right) > 0
