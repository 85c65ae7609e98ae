import { DatabaseSync, type StatementSync } from 'node:sqlite'

import type { FailpointKind } from './failpoint.ts'

type Exec = (this: DatabaseSync, text: string) => void
type Prepare = (this: DatabaseSync, ...parameters: Parameters<DatabaseSync['prepare']>) => StatementSync

const commit = /^\s*commit\b/i

/** Reports the commits of every SQLite database that this thread opens. */
export function watchSqlite(hit: (kind: FailpointKind) => void): void {
  // These methods are read as plain functions, because each call below passes its own database.
  const exec = Object.getOwnPropertyDescriptor(DatabaseSync.prototype, 'exec')?.value as Exec
  const prepare = Object.getOwnPropertyDescriptor(DatabaseSync.prototype, 'prepare')?.value as Prepare
  const around = <Result>(run: () => Result): Result => {
    hit('beforeCommit')
    const result = run()
    hit('afterCommit')
    return result
  }
  DatabaseSync.prototype.exec = function (this: DatabaseSync, text: string): void {
    if (!commit.test(text)) exec.call(this, text)
    else around(() => exec.call(this, text))
  }
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, ...parameters): StatementSync {
    const statement = prepare.apply(this, parameters)
    if (!commit.test(parameters[0])) return statement
    for (const name of ['run', 'all', 'get'] as const) {
      const original = statement[name].bind(statement) as () => never
      statement[name] = () => around(original)
    }
    return statement
  }
}
