import { fileURLToPath } from 'node:url'

import type { AppOverrides } from '../../src/app.ts'

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** The path of the built program. */
export const mainOfCli = pathOf('../../dist/cli/main.js')

/**
 * The path of a start script for the built program that reads overrides of the adapter from the environment, as do the processes that it
 * forks.
 */
export const mainWithOverrides = pathOf('main-with-overrides.mjs')

/** Returns the environment of a process of `mainWithOverrides`. */
export const overridesIn = (
  overrides: Pick<AppOverrides, 'acquireMs'> & { leaseMs?: number | undefined },
): Record<string, string> => ({
  ADAPTER_OVERRIDES: JSON.stringify(overrides),
})
