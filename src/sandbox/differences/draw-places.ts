import type { DatabaseSync } from 'node:sqlite'
import { AdapterError } from '../../errors.ts'
import { dayNumber } from '../dates.ts'
import { createRandom } from '../random.ts'
import type { Random } from '../random.ts'
import { isOnRoll } from '../roll.ts'
import type { Calendar } from '../seed/calendar.ts'
import { integer } from '../store/columns.ts'
import type { MarkStore } from '../store/marks.ts'
import type { Roster } from '../store/roster.ts'
import type { DifferencePlan, DrawnKind } from './difference-plan.ts'
import { formChanges } from './form-change.ts'
import { valueChanges } from './value-change.ts'
import type { MarkNeed } from './value-change.ts'

/** A session of a learner. */
export interface Place {
  readonly learner: number
  readonly session: number
}

/** A place and how it differs. */
export interface PlacedDifference extends Place {
  readonly kind: DrawnKind
}

/** The store that is drawn from. */
export interface DrawSource {
  readonly database: DatabaseSync
  readonly marks: MarkStore
  readonly roster: Roster
  readonly calendar: Calendar
}

const needs: Readonly<Record<DrawnKind, MarkNeed>> = {
  ...mapNeeds(valueChanges),
  ...mapNeeds(formChanges),
  ...{
    missing: 'mark',
    extra: 'noMark',
    doubled: 'mark',
    order: 'bothHalves',
    history: 'mark',
    start: 'mark',
  },
}

/** Conditions on a stored mark. Comments that are no text are those with a lone surrogate. */
const conditions: Readonly<Record<Exclude<MarkNeed, 'noMark'>, string>> = {
  mark: 'true',
  comment: "typeof(comment) = 'text' AND length(comment) >= 2",
  blanks: "typeof(comment) = 'text' AND comment <> trim(comment)",
  minutes: 'minutes_late IS NOT NULL',
  notZero: 'minutes_late IS NOT 0',
  nulls: 'comment IS NULL OR minutes_late IS NULL OR process IS NULL',
  bothHalves:
    'session % 2 = 0 AND EXISTS (SELECT 1 FROM mark pm WHERE pm.learner = mark.learner AND pm.session = mark.session + 1)',
}

/**
 * Draws `count` places, no two of one day of a learner where an `order` is among them. The seed and the stored marks decide them.
 * Errors: `ADP_USAGE` where too few marks have what a kind needs.
 */
export function drawPlaces(source: DrawSource, plan: DifferencePlan): PlacedDifference[] {
  const { seed, count, kinds, face } = plan
  const random = createRandom(seed, `differences ${face}`)
  const learners = learnersOf(source, plan)
  const sessions = sessionsOf(source, plan)
  const pools = new Map<MarkNeed, Place[]>()
  const taken = new Set<string>()
  const dayOf = ({ learner, session }: Place): string => `${learner} ${session >> 1}`
  // Days and not sessions: no drawn row meets the partner of another.
  const take = (place: Place | undefined): boolean => {
    if (place === undefined || taken.has(dayOf(place))) return false
    taken.add(dayOf(place))
    return true
  }
  return Array.from({ length: count }, (_, index) => {
    const kind = kinds[index % kinds.length] ?? 'recordedOn'
    const need = needs[kind]
    if (need === 'noMark') {
      for (let tries = 0; tries < 10_000; tries += 1) {
        const place = drawUnmarked(source, random, learners, sessions)
        if (place !== undefined && take(place)) return { ...place, kind }
      }
      throw tooFew(kind)
    }
    const pool = pools.get(need) ?? drawMarked(source, random, { need, learners, sessions, count: 2 * count })
    pools.set(need, pool)
    for (let place = pool.pop(); place !== undefined; place = pool.pop())
      if (take(place)) return { ...place, kind }
    throw tooFew(kind)
  })
}

const tooFew = (kind: DrawnKind): AdapterError =>
  new AdapterError(
    'ADP_USAGE',
    `Too few marks of the range can be drawn for the kind ${kind}. Lower count, widen from and to, or leave the kind out.`,
  )

function learnersOf({ roster }: DrawSource, { learners }: DifferencePlan): number[] {
  const wanted = learners === undefined ? undefined : new Set(learners)
  return roster.entries
    .filter(({ externalId }) => wanted?.has(externalId) ?? true)
    .map(({ number }) => number)
}

interface Span {
  readonly first: number
  readonly last: number
}

function sessionsOf({ calendar: { sessions } }: DrawSource, { from, to }: DifferencePlan): Span {
  const [start, end] = [sessions[0]?.number ?? 0, sessions.at(-1)?.number ?? 0]
  return {
    first: from === undefined ? start : Math.max(start, dayNumber(from) * 2),
    last: to === undefined ? end : Math.min(end, dayNumber(to) * 2 + 1),
  }
}

function drawUnmarked(
  { roster, calendar, marks }: DrawSource,
  random: Random,
  learners: readonly number[],
  { first, last }: Span,
): Place | undefined {
  const learner = learners[random.below(learners.length)]
  const session = first + random.below(Math.max(1, last - first + 1))
  const entry = learner === undefined ? undefined : roster.byNumber(learner)
  const day = calendar.byNumber(session)?.day
  if (learner === undefined || entry === undefined || day === undefined || !isOnRoll(entry, day))
    return undefined
  return marks.range(learner, session, session).length > 0 ? undefined : { learner, session }
}

/** At most `count` of the marks that meet a need, each as likely as any other, in one pass (reservoir sampling), shuffled. */
function drawMarked(
  { database }: DrawSource,
  random: Random,
  { need, learners, sessions, count }: MarkedDraw,
): Place[] {
  const statement = database.prepare(
    `SELECT learner, session FROM mark
     WHERE copy = 0 AND session BETWEEN ? AND ? AND learner IN (SELECT value FROM json_each(?)) AND (${conditions[need]})
     ORDER BY learner, session`,
  )
  const held: Place[] = []
  let seen = 0
  for (const row of statement.iterate(sessions.first, sessions.last, JSON.stringify(learners))) {
    const place = { learner: integer(row, 'learner'), session: integer(row, 'session') }
    seen += 1
    if (held.length < count) held.push(place)
    else {
      const at = random.below(seen)
      if (at < count) held[at] = place
    }
  }
  return shuffle(held, random)
}

interface MarkedDraw {
  readonly need: Exclude<MarkNeed, 'noMark'>
  readonly learners: readonly number[]
  readonly sessions: Span
  readonly count: number
}

/** Fisher and Yates. */
function shuffle(places: Place[], random: Random): Place[] {
  for (let at = places.length - 1; at > 0; at -= 1) {
    const other = random.below(at + 1)
    const [one, two] = [places[at], places[other]]
    if (one !== undefined && two !== undefined) [places[at], places[other]] = [two, one]
  }
  return places
}

function mapNeeds<Name extends string>(
  table: Readonly<Record<Name, { readonly needs: MarkNeed }>>,
): Record<Name, MarkNeed> {
  const entries = Object.entries<{ readonly needs: MarkNeed }>(table)
  return Object.fromEntries(entries.map(([name, { needs: need }]) => [name, need])) as Record<Name, MarkNeed>
}
