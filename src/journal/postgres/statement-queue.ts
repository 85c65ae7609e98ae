import type { PoolClient, QueryConfig, QueryResult, QueryResultRow } from 'pg'

import type { Later } from '../core/rows.ts'
import { type StatementName, statements } from './statements.ts'

/** Statements that go to the server together: one message, one answer. Their parameters are SQL literals. */
export interface StatementQueue {
  /** Queues a prepared statement; its rows are there after `send`. */
  add<Row extends QueryResultRow>(name: StatementName, ...parameters: string[]): Later<readonly Row[]>
  /** Queues a statement as it is. */
  addText(text: string): void
  /** Queues a statement whose parameters take time to make. A query with values of its own goes by itself. */
  addMade(name: StatementName, make: () => Promise<readonly string[] | QueryConfig>): void
  /** Sends what is queued. Gives the command of the last statement: COMMIT is answered with ROLLBACK after an error. */
  send(): Promise<string>
}

type OnRows = ((rows: readonly QueryResultRow[]) => void) | undefined

/** Names of the statements that a connection has prepared. */
const preparedBy = new WeakMap<PoolClient, Set<string>>()

/** A text of this length goes before the others are added. */
const MAX_TEXT = 262_144

/** Creates the empty queue of a connection. */
export function createStatementQueue(client: PoolClient): StatementQueue {
  const prepared = preparedBy.get(client) ?? new Set<string>()
  preparedBy.set(client, prepared)
  let queued: (() => void | Promise<void>)[] = []
  let text = ''
  let listeners: OnRows[] = []
  let command = ''
  const append = (statement: string, on?: OnRows): void => {
    text += statement + ';'
    listeners.push(on)
  }
  const execute = (name: StatementName, parameters: readonly string[], on?: OnRows): void => {
    if (!prepared.has(name)) {
      prepared.add(name)
      append(`prepare journal_${name} ${statements[name]}`)
    }
    append(`execute journal_${name}${parameters.length === 0 ? '' : `(${parameters.join()})`}`, on)
  }
  const sendText = async (): Promise<void> => {
    if (text === '') return
    const [message, waiting] = [text, listeners]
    text = ''
    listeners = []
    // pg gives one result for each statement of a text, which its types do not say.
    const answer: unknown = await client.query(message)
    const results = (Array.isArray(answer) ? answer : [answer]) as readonly QueryResult[]
    waiting.forEach((on, index) => on?.(results[index]?.rows ?? []))
    command = results.at(-1)?.command ?? ''
  }
  return {
    add: <Row extends QueryResultRow>(
      name: StatementName,
      ...parameters: string[]
    ): Later<readonly Row[]> => {
      let rows: readonly Row[] = []
      // Which columns a statement gives is known where it is queued; no driver can check it.
      queued.push(() => execute(name, parameters, (found) => (rows = found as readonly Row[])))
      return () => rows
    },
    addText: (statement) => {
      queued.push(() => append(statement))
    },
    addMade: (name, make) => {
      queued.push(async () => {
        const parameters = await make()
        if ('text' in parameters) {
          await sendText()
          await client.query(parameters)
        } else execute(name, parameters)
        if (text.length > MAX_TEXT) await sendText()
      })
    },
    send: async () => {
      const all = queued
      queued = []
      for (const one of all) await one()
      await sendText()
      return command
    },
  }
}
