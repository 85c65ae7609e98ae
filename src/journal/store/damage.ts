import { AdapterError } from '../../errors.ts'

/** The error for whoever opens a damaged journal: what is wrong, where, and what to do. */
export function damagedStore(place: string, what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal ${place} is damaged: ${what}. Starting on it could post marks twice. ` +
      'Restore the journal with the files beside it, or see what accepting the loss means: markbridge journal adopt.',
    { cause },
  )
}

/** The error for a request that met a damaged journal, or a damaged row of it. `what` holds no value. */
export function damagedJournal(what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal is damaged: ${what}. Nothing was sent. An operator has to repair it or to accept the loss (markbridge journal adopt).`,
    { cause },
  )
}
