import { AdapterError } from '../errors.ts'
import { createPostgresStore } from './postgres/store.ts'
import { createSqliteStore } from './sqlite/store.ts'
import type { Store } from './store.ts'

interface StoreOptions {
  /** How long `begin` waits in all: no single try may take longer. */
  readonly timeoutMs: number
  readonly wallMs: () => number
  /** True: an SQLite file is opened only where there is one. */
  readonly existing?: boolean
  /** Where a PostgreSQL journal keeps its mark; an SQLite file has it beside it. */
  readonly markFile?: string | undefined
}

/** Creates the store that an address names; nothing is opened yet. Error: `ADP_CONFIGURATION`. */
export function openStore(url: string, options: StoreOptions): Store {
  const { wallMs, existing = false, markFile } = options
  const timeoutMs = Math.ceil(options.timeoutMs / 2)
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  if (path !== undefined && path !== ':memory:')
    return createSqliteStore({ path, existing, busyMs: timeoutMs, wallMs })
  if (/^postgres(?:ql)?:\/\//.test(url)) return createPostgresStore({ url, timeoutMs, markFile })
  throw new AdapterError(
    'ADP_CONFIGURATION',
    'The address of a journal is sqlite:<file> or postgres://<user>:<password>@<host>/<database>.',
  )
}
