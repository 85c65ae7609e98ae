import { decide, type StagedRequest } from './decide.ts'
import { lowered, type Side, type Stage, type StageSetting } from './stage.ts'

/** The stage of a partner as the configuration file has it. */
export interface FileStage extends StageSetting {
  /** Lowers the stage, also while the store of stages cannot be reached; it never raises it. */
  readonly override: Stage | undefined
}

/** A partner as far as its stage goes. */
export interface StagedPartner {
  readonly id: string
  readonly fileStage: FileStage
}

/** How much the journal has to know of a write that V2 serves, before its last byte is sent there. */
export type KnownWrite = 'nothing' | 'identity' | 'keys'

/** One request on the side that was decided for it. It ends there. */
export interface StageEntry {
  readonly side: Side
  readonly stage: Stage
  /** The revision of the stage that it was decided by; 0: that of the file. */
  readonly revision: number
  /** For writes that V2 serves. */
  readonly known: KnownWrite
  /**
   * False once this instance may have been taken for dead since: another one may serve the unit on the other side by now. To be asked
   * right before a write is made durable, or before the byte is sent that completes it; nothing of it was sent then, and the request
   * enters again. Reads two clocks.
   */
  isCurrent(): boolean
  /** True while the store of stages answers this instance: a journal in the same database is then slow rather than gone. */
  isStoreAnswering(): boolean
  /** To be called once the request is over: then nothing of it is under way on its side. Calling it again changes nothing. */
  leave(): void
}

/** The stages of all partners while the adapter runs. */
export interface LiveStages {
  /**
   * Decides the side of a request and counts it there until `leave`. A write whose side is about to change waits, bounded. Errors:
   * `ADP_STAGE_UNKNOWN` (503) where the stage cannot be known in time; nothing was sent then.
   */
  enter(partner: StagedPartner, request: StagedRequest): StageEntry | Promise<StageEntry>
}

/**
 * The stages of the configuration file alone, for an adapter without a journal: nothing is kept of a write that V2 serves, so only stages
 * are allowed that serve all units on one side.
 */
export function createFileStages(secret: () => Uint8Array): LiveStages {
  return {
    enter: ({ id, fileStage }, request) => {
      const setting = lowered(fileStage, fileStage)
      return {
        side: decide(setting, id, request, secret) ?? 'v2',
        stage: setting.stage,
        revision: 0,
        known: 'nothing',
        isCurrent: () => true,
        isStoreAnswering: () => false,
        leave: () => undefined,
      }
    },
  }
}
