import type { CheckKind, ComparedExchange, ComparedRecord, OnCompared } from '../compared-exchange.ts'
import { fingerprintOf } from './fingerprint.ts'
import type { OfferedExchange } from './offered-exchange.ts'
import type { SkipReason } from './skip-reason.ts'

/** How checks of live exchanges end: offered = compared + dropped + skipped, for each partner and check. */
export type CheckEnd =
  | { readonly kind: 'compared'; readonly exchange: ComparedExchange }
  | { readonly kind: 'dropped'; readonly reason: 'full' | 'closed' }
  | { readonly kind: 'skipped'; readonly reason: SkipReason }

/** Takes the ends of checks; never throws. */
export type OnCheckEnd = (exchange: OfferedExchange, check: CheckKind, end: CheckEnd) => void

/** One check of an exchange. It ends once; another end changes nothing. */
export interface Check {
  compared(records: readonly ComparedRecord[], delaysMs?: readonly number[]): void
  dropped(reason: 'full' | 'closed'): void
  skipped(reason: SkipReason): void
}

/** Opens a check, which was counted as offered. */
export type OpenCheck = (exchange: OfferedExchange, check: CheckKind) => Check

/** Creates what hands the results of checks on. An exchange that was sampled and not compared goes on without records. */
export function createChecks(onEnd: OnCheckEnd, onCompared: OnCompared): OpenCheck {
  return (exchange, check) => {
    let isOver = false
    const end = (
      how:
        | 'compared'
        | { readonly kind: 'dropped'; readonly reason: 'full' | 'closed' }
        | { readonly kind: 'skipped'; readonly reason: SkipReason },
      records: readonly ComparedRecord[] = [],
      delaysMs: readonly number[] = [],
    ): void => {
      if (isOver) return
      isOver = true
      const result = toCompared(exchange, check, records, delaysMs)
      onEnd(exchange, check, how === 'compared' ? { kind: 'compared', exchange: result } : how)
      onCompared(result)
    }
    return {
      compared: (records, delaysMs) => end('compared', records, delaysMs),
      dropped: (reason) => end({ kind: 'dropped', reason }),
      skipped: (reason) => end({ kind: 'skipped', reason }),
    }
  }
}

function toCompared(
  exchange: OfferedExchange,
  check: CheckKind,
  records: readonly ComparedRecord[],
  delaysMs: readonly number[],
): ComparedExchange {
  const { client, stage, revision, served, unit, kind, receivedMs } = exchange
  const partner = client.partner.id
  const fingerprint = records.length === 0 ? undefined : fingerprintOf(exchange)
  return { partner, stage, revision, served, unit, kind, check, receivedMs, fingerprint, records, delaysMs }
}
