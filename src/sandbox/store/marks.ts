import type { DatabaseSync } from 'node:sqlite'

import { type Identities, zeroGuid } from '../identity.ts'
import type { SandboxSettings } from '../options.ts'
import { integer, integerOrNull, type Row, storedText, text, textOrNull, transact } from './database.ts'

/** A stored mark. Learner, session, code and actor are internal numbers, which are converted to ids in replies. */
export interface Mark {
  readonly learner: number
  readonly session: number
  /** 0 for the first mark of a session. Duplicates of the mark have higher numbers, if duplicates are allowed. */
  readonly copy: number
  readonly code: number
  readonly present: boolean
  readonly absent: boolean
  readonly minutesLate: number | null
  readonly comment: string | null
  /** Milliseconds since 1970 in UTC. */
  readonly recordedOn: number
  readonly actor: number
  readonly changeProcessName: string | null
  readonly externalId: string
  /** The number of the effect (accepted write) that wrote the mark, or 0 for a seeded mark. */
  readonly seq: number
}

export function packFlags(present: boolean, absent: boolean): number {
  return (present ? 1 : 0) | (absent ? 2 : 0)
}

function readContent(row: Row) {
  const flags = integer(row, 'flags')
  return {
    learner: integer(row, 'learner'),
    session: integer(row, 'session'),
    code: integer(row, 'code'),
    present: (flags & 1) !== 0,
    absent: (flags & 2) !== 0,
    minutesLate: integerOrNull(row, 'minutes_late'),
    comment: textOrNull(row, 'comment'),
    seq: integer(row, 'seq'),
  }
}

function readMark(ids: Identities, row: Row): Mark {
  const content = readContent(row)
  return {
    ...content,
    copy: integer(row, 'copy'),
    recordedOn: integer(row, 'recorded_on'),
    actor: integer(row, 'actor'),
    changeProcessName: textOrNull(row, 'process'),
    externalId: textOrNull(row, 'external_id') ?? ids.guid('mark', content.learner, content.session),
  }
}

export type Face = 'V2' | 'V3'

/** An accepted write in the log of effects. An effect never changes, and only a reset removes effects. */
export interface Effect extends Omit<Mark, 'copy' | 'recordedOn' | 'actor' | 'changeProcessName'> {
  readonly face: Face
}

const readEffect = (row: Row): Effect => ({
  ...readContent(row),
  face: text(row, 'face') === 'V2' ? 'V2' : 'V3',
  externalId: text(row, 'external_id'),
})

type WriteResult = { readonly mark: Mark } | { readonly conflict: 'marked' | 'idTaken' }

export interface MarkChange {
  readonly mark: Mark
  readonly changedBy: number
}

const columns =
  'learner, session, copy, code, flags, minutes_late, comment, recorded_on, actor, process, external_id, seq'

export function createMarkStore(database: DatabaseSync, ids: Identities) {
  const prepare = (sql: string) => database.prepare(sql)
  const copies = prepare(`SELECT ${columns} FROM mark WHERE learner = ? AND session = ? ORDER BY copy`)
  const byStoredId = prepare(`SELECT ${columns} FROM mark WHERE external_id = ?`)
  const insert = prepare(`INSERT INTO mark (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const copyToHistory = prepare(
    `INSERT INTO mark_history (replaced_by, ${columns})
     SELECT ?, ${columns} FROM mark WHERE learner = ? AND session = ? AND copy = ?`,
  )
  const remove = prepare('DELETE FROM mark WHERE learner = ? AND session = ? AND copy = ?')
  const log = prepare('INSERT INTO effect VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
  const inRange = prepare(
    `SELECT ${columns} FROM mark WHERE learner = ? AND session BETWEEN ? AND ? ORDER BY session, copy`,
  )
  const marksOf = (table: string): string => `SELECT ${columns} FROM ${table}`
  const changed = prepare(
    `${marksOf('mark')} WHERE seq > 0 AND seq IN (SELECT seq FROM effect WHERE written_at >= ?) ORDER BY seq`,
  )
  const changesOf = (place: string): string =>
    `SELECT replaced_by AS changed_by, ${columns} FROM mark_history WHERE ${place}
     UNION ALL SELECT seq AS changed_by, ${columns} FROM mark_history WHERE seq > 0 AND ${place}
     UNION ALL SELECT seq AS changed_by, ${columns} FROM mark WHERE seq > 0 AND ${place}
     ORDER BY changed_by, seq`
  const changes = prepare(changesOf('true'))
  const changesOfSession = prepare(changesOf('learner = ?1 AND session = ?2'))
  const firstSince = prepare('SELECT min(seq) AS seq FROM effect WHERE written_at >= ?')
  const previous = prepare(
    `SELECT ${columns} FROM mark_history
     WHERE learner = ? AND session = ? AND copy = ? AND replaced_by > ? AND seq <= ? ORDER BY replaced_by LIMIT 1`,
  )
  const effectsAfter = prepare('SELECT * FROM effect WHERE seq > ? ORDER BY seq')
  const sessionsWritten = prepare('SELECT min(session) AS first, max(session) AS last FROM effect')
  const maxSeq = prepare('SELECT coalesce(max(seq), 0) AS seq FROM effect')
  const seqAt = prepare('SELECT coalesce(max(seq), 0) AS seq FROM effect WHERE written_at <= ?')
  const loadSeq = (): number => integer(maxSeq.get() ?? {}, 'seq')
  let seq = loadSeq()

  const readChange = (row: Row): MarkChange => ({
    mark: readMark(ids, row),
    changedBy: integer(row, 'changed_by'),
  })
  const byId = (externalId: string): Mark | undefined => {
    const stored = byStoredId.get(externalId)
    if (stored !== undefined) return readMark(ids, stored)
    const place = ids.read('mark', externalId)
    if (place === undefined) return undefined
    const rows = copies.all(place.first, place.second).map((row) => readMark(ids, row))
    return rows.find((mark) => mark.externalId === externalId)
  }

  const write = (
    draft: Omit<Mark, 'copy' | 'externalId' | 'seq'>,
    {
      externalId: given,
      face,
      writtenAt,
      posted,
      onExisting,
    }: {
      /** The id that the client sent. For the all-zero guid, the store assigns an id. */
      readonly externalId: string
      readonly face: Face
      /** The time of the service in milliseconds since 1970, which can differ from `recordedOn`. */
      readonly writtenAt: number
      /** The values that the client sent, which the log of effects contains even if the service stores other values. */
      readonly posted: Pick<Mark, 'minutesLate' | 'comment'>
      /** The result of a write to a session that has a mark. The behaviour of the real service is unknown (service-facts 20). */
      readonly onExisting: SandboxSettings['onExisting']
    },
  ): WriteResult => {
    const { learner, session, code, minutesLate, comment, recordedOn, actor, changeProcessName } = draft
    const rows = copies.all(learner, session)
    const named = given !== zeroGuid
    const taken = named ? byId(given) : undefined
    if (taken !== undefined && (taken.learner !== learner || taken.session !== session))
      return { conflict: 'idTaken' }
    const first = rows[0] === undefined ? undefined : readMark(ids, rows[0])
    const replaced = taken ?? (onExisting === 'replace' ? first : undefined)
    if (replaced === undefined && first !== undefined && onExisting === 'conflict')
      return { conflict: 'marked' }
    const next = seq + 1
    // A replaced mark keeps its id, so an id that a client sent is used only for a new mark.
    const externalId = replaced?.externalId ?? (named ? given : ids.guid('posted', next))
    const copy = replaced?.copy ?? rows.length
    const flags = packFlags(draft.present, draft.absent)
    transact(database, () => {
      if (replaced !== undefined) {
        copyToHistory.run(next, learner, session, copy)
        remove.run(learner, session, copy)
      }
      const values = [code, flags, minutesLate, storedText(comment), recordedOn] as const
      insert.run(learner, session, copy, ...values, actor, storedText(changeProcessName), externalId, next)
      const sent = [code, flags, posted.minutesLate, storedText(posted.comment)] as const
      log.run(next, face, learner, session, ...sent, externalId, writtenAt)
    })
    seq = next
    return { mark: { ...draft, copy, externalId, seq } }
  }

  return {
    write,
    /** Returns the mark with this id, or `undefined` if there is none. The id must be in lower case. */
    byId,
    /** Returns the marks of a learner from session `first` to session `last` (inclusive), in order of time. */
    range: (learner: number, first: number, last: number): Mark[] =>
      inRange.all(learner, first, last).map((row) => readMark(ids, row)),
    /** Returns the marks that were written since a time in milliseconds since 1970, in the order of the writes, without seeded marks. */
    changedSince: (ms: number): Mark[] => changed.all(ms).map((row) => readMark(ids, row)),
    /** Returns the states of marks that were created or replaced by writes at or after an instant, in the order of the writes. */
    history: (ms: number): MarkChange[] => {
      const first = integerOrNull(firstSince.get(ms) ?? {}, 'seq') ?? Infinity
      return changes
        .all()
        .map(readChange)
        .filter(({ changedBy }) => changedBy >= first)
    },
    /** Returns the states of the marks of one learner and session that were created or replaced by writes, in the order of the writes. */
    historyOf: ({ learner, session }: Pick<Mark, 'learner' | 'session'>): MarkChange[] =>
      changesOfSession.all(learner, session).map(readChange),
    /** Returns the state of a mark after effect `at`, or `undefined` if its session had no mark at this time. */
    before: (mark: Mark, at: number): Mark | undefined => {
      if (mark.seq <= at) return mark
      const row = previous.get(mark.learner, mark.session, mark.copy, at, at)
      return row === undefined ? undefined : readMark(ids, row)
    },
    effects: (after = 0): Effect[] => effectsAfter.all(after).map(readEffect),
    /** Returns the number of the last effect that was written by the time `atMs` (default: now), or 0 if there is no such effect. */
    lastSeq: (atMs?: number): number => (atMs === undefined ? seq : integer(seqAt.get(atMs) ?? {}, 'seq')),
    reload: (): void => {
      seq = loadSeq()
    },
    /** Undoes every accepted write. Returns the first and last session with a write, or `undefined` if there were no writes. */
    reset: () => {
      const written = sessionsWritten.get() ?? {}
      const [first, last] = [integerOrNull(written, 'first'), integerOrNull(written, 'last')]
      transact(database, () => {
        database.exec(`
          DELETE FROM mark WHERE seq > 0;
          INSERT OR IGNORE INTO mark (${columns}) SELECT ${columns} FROM mark_history WHERE seq = 0;
          DELETE FROM mark_history;
          DELETE FROM effect;`)
      })
      seq = 0
      return first === null || last === null ? undefined : { first, last }
    },
  }
}
