import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { collectOutput } from './collect-output.ts'
import type { PostgresUser } from './find-postgres.ts'

/** The password of the database user `postgres`. */
export const PASSWORD = 'markbridge'

/** Starts a program of PostgreSQL. */
export type Run = (program: string, args: readonly string[]) => ChildProcess

interface Programs {
  readonly folder: string
  readonly user: PostgresUser | undefined
  readonly run: Run
}

const kept = fileURLToPath(new URL('../../../node_modules/.cache/markbridge-postgres', import.meta.url))

/**
 * Creates the data folder of a new server in the folder `data`, which must not exist yet. The first data folder is kept and copied from
 * then on, because creating one takes ten times as long.
 */
export async function makeData(data: string, programs: Programs): Promise<void> {
  const { mtimeMs } = statSync(join(programs.folder, 'initdb'))
  const key = JSON.stringify([programs.folder, mtimeMs, programs.user?.uid])
  const model = join(kept, createHash('sha256').update(key).digest('hex').slice(0, 16))
  if (!existsSync(model)) {
    await initialise(data, programs)
    await keep(data, model)
  } else await finish(spawn('cp', ['-a', model, data]))
}

async function initialise(data: string, { user, run }: Programs): Promise<void> {
  const passwordFile = join(dirname(data), 'password')
  mkdirSync(data, { mode: 0o700 })
  writeFileSync(passwordFile, PASSWORD, { mode: 0o600 })
  if (user !== undefined) for (const path of [data, passwordFile]) chownSync(path, user.uid, user.gid)
  await finish(run('initdb', ['-D', data, '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`,
    '-E', 'UTF8', '--locale=C', '--wal-segsize=1', '--no-sync'])) // prettier-ignore
}

/** Moves a complete copy of the data folder into place. Several processes may do so at once. The first copy stays. */
async function keep(data: string, model: string): Promise<void> {
  const own = `${model}.${process.pid}`
  mkdirSync(kept, { recursive: true })
  try {
    await finish(spawn('cp', ['-a', data, own]))
    renameSync(own, model)
  } catch {
    rmSync(own, { recursive: true, force: true })
  }
}

async function finish(child: ChildProcess): Promise<void> {
  const printed = collectOutput(child)
  const [status] = (await once(child, 'close')) as [number | null]
  if (status !== 0) throw new Error(`${child.spawnfile} ended with ${String(status)}: ${printed()}`)
}
