import type { Journal } from '../journal/index.ts'
import type { EchoLearning } from '../writes/index.ts'
import { formatProfile, joinProfiles, parseProfile } from '../translate/index.ts'
import type { Clock } from '../clock.ts'

/** Keeps the profile of a service in the journal. */
export interface EchoKeeper {
  /** Loads the stored profile; leaves it empty where the journal cannot be read. */
  load(): Promise<void>
  /** Saves and loads from time to time, until it is stopped. */
  start(): void
  /** Saves the changes and stops. */
  stop(): Promise<void>
}

const SAVE_EVERY_MS = 5_000
/** Number of saves between two loads of the profile, which other instances change, too. */
const LOAD_EVERY = 12

/** Creates the keeper of one service's profile. It never delays a request, and retries after a failure. */
export function createEchoKeeper(
  echoes: Pick<EchoLearning, 'profile' | 'use'>,
  journal: Pick<Journal, 'readNote' | 'writeNote'>,
  baseUrl: URL,
  clock: Clock,
): EchoKeeper {
  const name = `echo profile of ${baseUrl.origin}${baseUrl.pathname}`
  let kept = echoes.profile()
  let timer: (() => void) | undefined
  let rounds = 0
  let running: Promise<void> | undefined

  const synchronise = async (): Promise<void> => {
    const text = await journal.readNote(name)
    const stored = text === undefined ? undefined : parseProfile(text)
    const own = echoes.profile()
    const joined = stored === undefined ? own : joinProfiles(own, stored)
    if (joined !== own) echoes.use(joined)
    if (formatProfile(joined) !== text) await journal.writeNote(name, formatProfile(joined))
    kept = joined
  }
  const plan = (): void => {
    timer = clock.after(SAVE_EVERY_MS, () => {
      rounds += 1
      const isDue = echoes.profile() !== kept || rounds % LOAD_EVERY === 0
      // The journal reports its own failures; unsaved changes are saved the next time.
      running = isDue ? synchronise().catch(() => undefined) : undefined
      plan()
    })
  }
  return {
    load: () => synchronise().catch(() => undefined),
    start: plan,
    stop: async () => {
      timer?.()
      await running
      if (echoes.profile() !== kept) await synchronise().catch(() => undefined)
    },
  }
}
