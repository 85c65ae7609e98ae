import type { BatchTally } from '../observability/events.ts'
import type { PartReply } from '../v2/index.ts'
import type { KeptReply } from './relayed/kept-reply.ts'
import type { WriteRequest } from './stored-request.ts'

/** Takes the parts of a reply, in any order. */
export interface Reply {
  /** Sets the answer of the record at `index`; a second one for the same record changes nothing. */
  settle(index: number, reply: PartReply): void
  /** Allows the status line to leave; until then the request may still be answered otherwise. */
  begin(): void
  /** True once the status line has left: the request can only be answered part by part then. */
  hasLeft(): boolean
  /** Writes the rest and ends the reply; every record has been settled by then. Resolves once all was handed over. */
  end(): Promise<void>
}

/**
 * Opens the reply once its form and ids are known: those of the first of several equal requests. `timing` gives the value of
 * `Server-Timing`.
 */
export type OpenReply = (
  form: Pick<WriteRequest, 'layout' | 'msgtypeResponse' | 'recordsUrl'>,
  newId: () => string,
  timing: () => string | undefined,
) => Reply

/** The counts of an answered request. */
export interface Answered {
  readonly tally: BatchTally
  readonly queuedMs: number
  /** The journal knew the batch already. */
  readonly replayed: boolean
  /** Records of it were posted or read back for this request. */
  readonly askedV3: boolean
  /** Its number in the journal. */
  readonly batch: number
  /** The reply that V2 gave when it served this batch: it is to be sent as it is. */
  readonly kept?: KeptReply | undefined
}
