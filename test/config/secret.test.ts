import { inspect } from 'node:util'

import { expect, it } from 'vitest'

import { Secret } from '../../src/config/index.ts'

const secret = new Secret('hush')

it('gives its value to the one place that asks', () => {
  expect(secret.reveal()).toBe('hush')
})

it.each([
  ['as text', String(secret)],
  ['as JSON', JSON.stringify({ secret })],
  ['inspected', inspect({ secret }, { depth: 9, showHidden: true })],
  ['by its members', JSON.stringify([Object.entries(secret), Object.keys(secret)])],
  ['cloned', JSON.stringify(structuredClone(Object.assign({}, secret)))],
])('is never shown: %s', (_name, text) => {
  expect(text).not.toContain('hush')
})
