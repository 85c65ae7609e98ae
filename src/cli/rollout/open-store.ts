import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'

import { toFileStage } from '../../app/partners.ts'
import { createStageFile, markFileOf, stageFileOf } from '../../app/stages.ts'
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

/** A partner of the file. */
export interface FilePartner {
  readonly own: PartnerConfig
  readonly fileStage: StageSetting
}

/** The partners of a configuration by id, each with the stage at which it begins. */
export function filePartnersOf({ partners, rollout }: Config): ReadonlyMap<string, FilePartner> {
  return new Map(partners.map((own) => [own.id, { own, fileStage: toFileStage(own, rollout) }]))
}

/** True where stages are those of the file, and nothing else. */
export function hasNoJournal({ journal }: Pick<Config, 'journal'>): boolean {
  return journalUrlOf(journal) === 'none'
}

/**
 * Runs `work` with the store of stages, also while it is served. `goesOn`: its trail has to go on from the one that the state file of this
 * machine knows. Errors: `ADP_USAGE` for `journal: none`; those of `openRolloutStore`.
 */
export async function useStore<Result>(
  config: Pick<Config, 'journal'>,
  work: (store: OpenedRolloutStore) => Promise<Result>,
  { goesOn = true }: { readonly goesOn?: boolean } = {},
): Promise<Result> {
  const { journal } = config
  const url = journalUrlOf(journal)
  if (url === 'none')
    throw new AdapterError(
      'ADP_USAGE',
      'The configured journal is none, so stages are those of the configuration file: change partners[].stage there and reload.',
    )
  const known = goesOn ? (await readStateFile(config))?.view?.trail : undefined
  const options = { url, keys: journalKeysOf(journal), markFile: markFileOf(journal) }
  const store = await openRolloutStore(options, known).catch((cause: unknown) => {
    throw isUncreated(cause, config) ? uncreated(url) : cause
  })
  try {
    return await work(store)
  } finally {
    // What was done is said in any case.
    await store.close().catch(() => undefined)
  }
}

/** True for the error of opening a journal that no instance has created yet: none has left a file, nor the stages that it knew. */
export function isUncreated(cause: unknown, { journal }: Pick<Config, 'journal'>): boolean {
  const path = sqlitePathOf(journalUrlOf(journal))
  if (!(cause instanceof AdapterError) || cause.code !== 'ADP_JOURNAL_UNAVAILABLE') return false
  return path !== undefined && ![path, stageFileOf(journal) ?? path].some((file) => existsSync(file))
}

const uncreated = (url: string): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_UNAVAILABLE',
    `There is no journal at ${url}: the file does not exist. Start serve once: it creates the journal.`,
  )

/** As `useStore`, for a command that changes nothing. Error: `ADP_FORBIDDEN` for a token that is not an operator's. */
export async function readStore<Result>(
  config: Config,
  work: (store: OpenedRolloutStore) => Promise<Result>,
): Promise<Result> {
  expectMayLook(config)
  return useStore(config, work)
}

/** What an instance on this machine has kept; undefined: nothing that can be read, which must not keep anybody from going back. */
export async function readStateFile({ journal }: Pick<Config, 'journal'>): Promise<KnownStages | undefined> {
  const text = await createStageFile(journal)
    .load()
    .catch(() => undefined)
  return parseKnown(text ?? '')
}

/**
 * Reading is open to every user who can open the journal, as it is with `journal ls`; but a token that is set has to be one.
 */
function expectMayLook(config: Pick<Config, 'rollout'>): void {
  if (readEnvironment().operatorToken !== undefined) expectMay(config, 'look')
}

/** The person who runs the command, who may do this. Error: `ADP_FORBIDDEN`. */
export function expectMay(config: Pick<Config, 'rollout'>, action: RolloutAction): Actor {
  const actor = findActor(config)
  expectAllowed(actor, action)
  return actor
}

/** The person who runs the command. Error: `ADP_FORBIDDEN` for a token that is missing or unknown. */
export function findActor(config: Pick<Config, 'rollout'>): Actor {
  return identifyOperator(operatorsOf(config), readEnvironment().operatorToken, systemUser())
}

/** The operators of a configuration, for comparison. */
export function operatorsOf({ rollout }: Pick<Config, 'rollout'>): readonly ListedOperator[] {
  return rollout.operators.map(({ tokenSha256, ...operator }) => ({
    ...operator,
    tokenSha256: tokenSha256.reveal(),
  }))
}

/** A container may run under a number that has no name. */
export function systemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`
  }
}
