import { expect, test } from 'vitest'
import { createIssuedTokens, createTokens, lifetimeSeconds } from '../../../src/sandbox/security/tokens.ts'

test('issued tokens differ, hold their domains and expire after an hour', () => {
  let now = 0
  const tokens = createIssuedTokens(() => now)
  const domains = new Set(['Attendance'])
  const [one, other] = [tokens.issue(domains), tokens.issue(undefined)]
  expect(one).not.toBe(other)
  expect(tokens.find(one)?.domains).toBe(domains)
  expect(tokens.find(other)).toEqual({ domains: undefined, expiresAt: lifetimeSeconds * 1000 })
  now = lifetimeSeconds * 1000 - 1
  expect(tokens.find(one)).toBeDefined()
  now += 1
  expect([tokens.find(one), tokens.find('unknown')]).toEqual([undefined, undefined])
})

test('declared tokens never expire', () => {
  const issued = createIssuedTokens(() => Number.MAX_SAFE_INTEGER)
  const tokens = createTokens(new Map([['fixed', undefined]]), issued)
  expect(tokens.find('fixed')).toEqual({ domains: undefined, expiresAt: undefined })
})
