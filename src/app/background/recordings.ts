import { randomBytes } from 'node:crypto'

import { toRecorded } from '../../compare/recording/exchange.ts'
import { createPseudonyms } from '../../compare/recording/pseudonyms.ts'
import {
  createRecordingTarget,
  openRecordingStore,
  type RecordFate,
  type RecordingTarget,
} from '../../compare/recording/recording-store.ts'
import type { WireExchange } from '../../compare/wire-exchange.ts'
import { changedPaths, type Config, decodeKey, type RecordConfig } from '../../config/index.ts'
import { errorCodeOf } from '../../errors.ts'

/** Larger exchanges are not recorded. */
export const MAX_EXCHANGE_BYTES = 4_194_304

interface Recorded {
  readonly settings: RecordConfig
  readonly target: RecordingTarget
}

/** Creates the recordings of the partners that have `record`. `onStopped`: the folder of a partner cannot be written. */
export function createRecordings(nowMs: () => number, onStopped: (partner: string, code: string) => void) {
  let recorded = new Map<string, Recorded>()
  const toTarget = (partner: string, { to, key, pseudonyms, maxBytes }: RecordConfig): RecordingTarget =>
    createRecordingTarget({
      open: () =>
        openRecordingStore({
          ...{ folder: to, maxBytes, nowMs },
          key: key && decodeKey(key),
        }),
      pseudonyms: pseudonyms && createPseudonyms(keyOf(pseudonyms)),
      // Without the message, which may name what is recorded.
      onStopped: (cause) => onStopped(partner, errorCodeOf(cause) ?? 'unknown'),
    })
  return {
    record: async (partner: string, exchange: WireExchange): Promise<RecordFate> => {
      const target = recorded.get(partner)?.target
      if (target === undefined) return 'dropped'
      if (target.isStopped()) return 'stopped'
      const plain = await toRecorded(exchange, MAX_EXCHANGE_BYTES)
      return plain === undefined ? 'tooLarge' : target.keep(plain)
    },
    /** Opens the folders of a configuration. */
    use: ({ partners }: Pick<Config, 'partners'>): void => {
      const before = recorded
      recorded = new Map(
        partners.flatMap(({ id, record }) => {
          if (record === undefined) return []
          const own = before.get(id)
          // A reload starts one again that has stopped.
          const isSame = own?.target.isStopped() === false && changedPaths(own.settings, record).length === 0
          return [[id, isSame ? own : { settings: record, target: toTarget(id, record) }] as const]
        }),
      )
    },
    /** Removes what is past its retention period. */
    removeOld: async (): Promise<void> => {
      await Promise.all([...recorded.values()].map(({ target }) => target.removeOld()))
    },
  }
}

/** Without a key of its own, one that ends with the thread: afterwards no one can undo a pseudonym. */
const keyOf = (pseudonyms: NonNullable<RecordConfig['pseudonyms']>): Uint8Array =>
  pseudonyms === true ? randomBytes(32) : (decodeKey(pseudonyms.key) ?? randomBytes(32))
