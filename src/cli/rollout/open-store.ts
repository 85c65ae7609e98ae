import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'

import { toFileStage } from '../../app/partners.ts'
import { createStageFile, highWaterFileOf, stageFileOf } from '../../app/stages.ts'
import {
  type Config,
  journalKeysOf,
  journalUrlOf,
  type PartnerConfig,
  readEnvironment,
} from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { sqlitePathOf } from '../../journal/index.ts'
import { type KnownStages, parseKnown } from '../../rollout/live/known-stages.ts'
import {
  type Actor,
  expectAllowed,
  identifyOperator,
  type ListedOperator,
  type RolloutAction,
} from '../../rollout/operators.ts'
import type { StageSetting } from '../../rollout/stage.ts'
import { type OpenedRolloutStore, openRolloutStore } from '../../rollout/store/rollout-store.ts'

/** A partner of the configuration file, and the stage that the file gives it. */
export interface FilePartner {
  readonly own: PartnerConfig
  readonly fileStage: StageSetting
}

export function filePartnersOf({ partners, rollout }: Config): ReadonlyMap<string, FilePartner> {
  return new Map(partners.map((own) => [own.id, { own, fileStage: toFileStage(own, rollout) }]))
}

/** Returns true if the configuration has no journal, so that the stages of the configuration file apply. */
export function hasNoJournal({ journal }: Pick<Config, 'journal'>): boolean {
  return journalUrlOf(journal) === 'none'
}

/**
 * Runs `work` with the store of stages. Instances may use the store at the same time. The store's `verify` compares the audit trail with
 * the stage file of this machine. Throws `ADP_USAGE` for `journal.url: none`, and the errors of `openRolloutStore`.
 */
export async function useStore<Result>(
  config: Pick<Config, 'journal'>,
  work: (store: OpenedRolloutStore) => Promise<Result>,
): Promise<Result> {
  const { journal } = config
  const url = journalUrlOf(journal)
  if (url === 'none')
    throw new AdapterError(
      'ADP_USAGE',
      'journal.url is none, so the stages of the configuration file apply. Nothing has changed. Change partners[].stage in the file and reload.',
    )
  const options = { url, keys: journalKeysOf(journal), highWaterFile: highWaterFileOf(journal) }
  const known = (await readStageFile(config))?.view?.trail
  const store = await openRolloutStore(options, known).catch((cause: unknown) => {
    throw isUncreated(cause, config) ? uncreated(url) : cause
  })
  try {
    return await work(store)
  } finally {
    // A failure to close the store must not hide the result of `work`.
    await store.close().catch(() => undefined)
  }
}

/** Returns true if `cause` means that no instance has created the journal yet: neither its file nor a stage file exists. */
export function isUncreated(cause: unknown, { journal }: Pick<Config, 'journal'>): boolean {
  const path = sqlitePathOf(journalUrlOf(journal))
  if (!(cause instanceof AdapterError) || cause.code !== 'ADP_JOURNAL_UNAVAILABLE') return false
  return path !== undefined && ![path, stageFileOf(journal) ?? path].some((file) => existsSync(file))
}

const uncreated = (url: string): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_UNAVAILABLE',
    `There is no journal at ${url}: the file does not exist. Nothing has changed. Start serve once, which creates the journal.`,
  )

/** Runs `work` like `useStore`, for a command that changes nothing. Throws `ADP_FORBIDDEN` if the given token belongs to no operator. */
export async function readStore<Result>(
  config: Config,
  work: (store: OpenedRolloutStore) => Promise<Result>,
): Promise<Result> {
  expectMayLook(config)
  return useStore(config, work)
}

/** Reads the stage file of this machine. Returns `undefined` if it cannot be read, because a damaged file must not prevent a step back. */
export async function readStageFile({ journal }: Pick<Config, 'journal'>): Promise<KnownStages | undefined> {
  const text = await createStageFile(journal)
    .load()
    .catch(() => undefined)
  return parseKnown(text ?? '')
}

/** Checks the token if the environment has one. No token is needed to look, because every user who can open the journal can read it. */
function expectMayLook(config: Pick<Config, 'rollout'>): void {
  if (readEnvironment().operatorToken !== undefined) expectMay(config, 'look')
}

/** Returns the person who runs the command. Throws `ADP_FORBIDDEN` if the person may not take the action. */
export function expectMay(config: Pick<Config, 'rollout'>, action: RolloutAction): Actor {
  const actor = findActor(config)
  expectAllowed(actor, action)
  return actor
}

/** Returns the person who runs the command. Throws `ADP_FORBIDDEN` if a required token is missing, or if it is unknown. */
export function findActor(config: Pick<Config, 'rollout'>): Actor {
  return identifyOperator(operatorsOf(config), readEnvironment().operatorToken, systemUser())
}

/** Returns the operators with the hashes of their tokens, so that a given token can be compared with them. */
export function operatorsOf({ rollout }: Pick<Config, 'rollout'>): readonly ListedOperator[] {
  return rollout.operators.map(({ tokenSha256, ...operator }) => ({
    ...operator,
    tokenSha256: tokenSha256.reveal(),
  }))
}

/** Returns the name of the user of the operating system, or the user id if the user has no name, as in some containers. */
export function systemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`
  }
}
