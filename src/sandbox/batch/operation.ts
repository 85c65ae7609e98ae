import type { Reply } from '../edge/reply.ts'

/** One request of a batch. */
export interface Operation {
  /** Content-ID or JSON id; undefined: none was given. */
  readonly id: string | undefined
  /** Name of the changeset or atomicity group that applies whole or not at all; undefined: alone. */
  readonly group: string | undefined
  /** Ids of the operations that must have succeeded before. */
  readonly dependsOn: readonly string[]
  readonly method: string
  /** As written: absolute, absolute path, or relative to the service root. */
  readonly url: string
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

/** An operation with its answer. */
export interface OperationResult {
  readonly operation: Operation
  readonly reply: Reply
}

/** The path and query of an operation's URL (OData protocol 11.7.7.1). */
export function operationTarget(url: string, root: string): { path: string; query: string } {
  const local = url.replace(/^https?:\/\/[^/?]*/i, '')
  const absolute = local.startsWith('/') ? local : `${root}/${local}`
  const mark = absolute.indexOf('?')
  return mark < 0
    ? { path: absolute, query: '' }
    : { path: absolute.slice(0, mark), query: absolute.slice(mark + 1) }
}
