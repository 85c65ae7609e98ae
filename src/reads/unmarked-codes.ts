import { AdapterError } from '../errors.ts'
import type { Events } from '../observability/events.ts'
import { codeIdOf, type ReadRules, toCodeQuery } from '../translate/index.ts'
import type { Clock } from '../clock.ts'
import { BoundedMap } from '../partners/bounded-map.ts'
import type { ClientIdentity } from '../partners/owner.ts'
import type { Partner } from '../partners/partner.ts'
import { readCollection } from './collect-page.ts'
import { type ReadSession, readUpstream } from './read-upstream.ts'

export interface CodeClient {
  readonly partner: Pick<Partner, 'id' | 'unmarkedLetters' | 'reads'>
  readonly identity: Pick<ClientIdentity, 'credentialsHash'>
}

/** Finds the ids of the attendance codes that mean "no mark", if `reads.unmarkedCodes` names the codes by their letters. */
export interface UnmarkedCodes {
  /** Returns the rules of `rulesFor` without a call to V3, or `undefined` if the ids of the letters are not known or have expired. */
  knownRules(client: CodeClient): ReadRules | undefined
  /**
   * Returns the partner's rules with the ids of its letters from V3's lookup (service-facts 7). The lookup is read for each client, because
   * a token belongs to one school and each school has its own ids. The lookup is read again after ten minutes. If the service has no
   * lookup, or the client may not read it, the letters have no effect, and `unmarkedCodesUnknown` is logged. Throws the errors of
   * `readUpstream`: after a temporary failure the read of marks must fail too, because its page could contain rows that are not marks.
   */
  rulesFor(session: ReadSession, client: CodeClient): Promise<ReadRules>
}

const LOOKUP = 'AttendanceLookups'
const REMEMBERED_MS = 600_000
const MAX_CLIENTS = 4_096
/** Maximum number of pages of the lookup. One page suffices; a service that ignores the filter returns a few hundred codes. */
const MAX_PAGES = 20

export function createUnmarkedCodes(
  clock: Pick<Clock, 'nowMs'>,
  events: Pick<Events, 'unmarkedCodesUnknown'>,
): UnmarkedCodes {
  const known = new BoundedMap<string, { readonly ids: readonly string[]; readonly untilMs: number }>(
    MAX_CLIENTS,
  )
  /** The lookups in progress. Concurrent requests of one client share one lookup. */
  const lookups = new Map<string, Promise<readonly string[]>>()
  // The key includes the letters, because a reload of the configuration may change them.
  const cacheKey = ({ partner: { id, unmarkedLetters }, identity }: CodeClient): string =>
    `${id} ${unmarkedLetters.join(' ')} ${identity.credentialsHash}`
  const withIds = ({ partner: { reads } }: CodeClient, ids: readonly string[]): ReadRules => ({
    ...reads,
    unmarkedCodes: [...reads.unmarkedCodes, ...ids],
  })
  const knownRules = (client: CodeClient): ReadRules | undefined => {
    if (client.partner.unmarkedLetters.length === 0) return client.partner.reads
    const remembered = known.get(cacheKey(client))
    return remembered !== undefined && clock.nowMs() < remembered.untilMs
      ? withIds(client, remembered.ids)
      : undefined
  }
  return {
    knownRules,
    rulesFor: async (session, client) => {
      const rules = knownRules(client)
      if (rules !== undefined) return rules
      const name = cacheKey(client)
      for (let other = lookups.get(name); other !== undefined; other = lookups.get(name)) {
        // The lookup of another request may have failed for a reason of its own, such as a client that disconnected. Then this request
        // repeats the lookup.
        const ids = await other.catch(() => undefined)
        if (ids !== undefined) return withIds(client, ids)
      }
      const answer = lookUp(session, client.partner.unmarkedLetters, (status) =>
        events.unmarkedCodesUnknown({ partner: client.partner.id, status }),
      )
      lookups.set(name, answer)
      try {
        const ids = await answer
        known.set(name, { ids, untilMs: clock.nowMs() + REMEMBERED_MS })
        return withIds(client, ids)
      } finally {
        if (lookups.get(name) === answer) lookups.delete(name)
      }
    },
  }
}

async function lookUp(
  session: ReadSession,
  letters: readonly string[],
  onMissing: (status: number) => void,
): Promise<readonly string[]> {
  // Restores the count afterwards, because the pages of the lookup do not count as pages of the answer.
  const { pages } = session
  try {
    return await readIds(session, letters, onMissing)
  } catch (cause) {
    // Rethrows a 401 unchanged, because V3 rejects the same token for the marks too.
    if (!(cause instanceof AdapterError) || cause.status === 401) throw cause
    if (isRefused(cause)) {
      onMissing(cause.status)
      return []
    }
    throw new AdapterError(
      cause.code,
      `The adapter cannot read the ids of reads.unmarkedCodes in the code lookup of the service (${LOOKUP}). ${cause.message}`,
      { cause, details: cause.details },
    )
  } finally {
    session.pages = pages
  }
}

/** Returns true if the service understood the lookup and refused it, so that a retry would have the same result. */
function isRefused({ code, status }: AdapterError): boolean {
  return status === 403 || (code === 'ADP_UPSTREAM_REFUSED' && status >= 400 && status < 500)
}

async function readIds(
  session: ReadSession,
  letters: readonly string[],
  onMissing: (status: number) => void,
): Promise<readonly string[]> {
  const wanted = new Set(letters)
  const ids: string[] = []
  let query: string | undefined = toCodeQuery(letters)
  for (let page = 0; query !== undefined; page += 1) {
    const json = await readUpstream(session, LOOKUP, query)
    if (json === undefined) {
      onMissing(404)
      return []
    }
    const { rows, link } = readCollection(json)
    for (const row of rows) {
      const id = codeIdOf(row, wanted)
      if (id !== undefined) ids.push(id)
    }
    if (link === query)
      throw new AdapterError(
        'ADP_UPSTREAM_PROTOCOL',
        'The lookup has a next link that leads to the same page. No record was returned. Try again later.',
      )
    if (page === MAX_PAGES)
      throw new AdapterError(
        'ADP_UPSTREAM_PROTOCOL',
        'The lookup has too many pages. No record was returned. Try again later.',
      )
    query = link
  }
  return ids
}
