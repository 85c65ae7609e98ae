import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import type { Serving } from '../rollout/store/open-stores.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import type { CliResult } from './run-cli.ts'
import { runCommand } from './run-command.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Returns the environment variable with the token of an operator. */
export const tokenOf = (name: string): Record<string, string> => ({
  MARKBRIDGE_OPERATOR_TOKEN: `token of ${name}`,
})

/** Creates an entry of `rollout.operators` for the token from `tokenOf`. */
export const operator = (name: string, role: string): object => ({
  name,
  role,
  tokenSha256: sha256(`token of ${name}`),
})

/** Writes a configuration with the partner acme and a short resend window, and returns its path. */
export async function rolloutFile(
  url: string,
  { partner = {}, rollout = {}, journal = {} }: { partner?: object; rollout?: object; journal?: object } = {},
): Promise<string> {
  const path = join(await makeFolder(), 'markbridge.yaml')
  const config = {
    upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' }, v2: { baseUrl: 'http://127.0.0.1:1' } },
    journal: { url, ...journal },
    rollout: { resendWindowMs: 1_000, ...rollout },
    partners: [{ id: 'acme', match: { any: true }, stage: 'legacy', ...partner }],
  }
  await writeFile(path, JSON.stringify(config))
  return path
}

/** Returns a function that runs the command `rollout` with a configuration. */
export const rolloutWith =
  (config: string, env: Record<string, string> = {}) =>
  (...args: string[]): Promise<CliResult> =>
    runCommand(['rollout', ...args, '--config', config], env)

/** Makes an instance acknowledge the stages that it reads until the test ends. `writes` returns the number of its writes in progress. */
export function answering({ store, instance }: Serving, writes = (): number => 0): void {
  let ends = false
  const answer = async (): Promise<void> => {
    while (!ends) {
      const { partners } = await store.snapshot()
      for (const [partner, { state, pending }] of partners) {
        await store.acknowledge(instance(), [
          {
            partner,
            revision: state?.revision ?? 0,
            pendingRevision: pending?.needsApproval === true ? undefined : pending?.revision,
            writesV2: pending === undefined ? 0 : writes(),
            writesV3: 0,
          },
        ])
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const running = answer()
  onTestFinished(async () => {
    ends = true
    await running
  })
}
