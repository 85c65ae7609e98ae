import type { Config } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { filePartnersOf, hasNoJournal, openTargetStore } from './open-target.ts'
import { toJson } from './rollout-json.ts'
import { formatStages } from './rollout-text.ts'
import { type StageView, viewStages } from './stage-view.ts'

/** The stages of a configuration's partners as far as they can be read here. */
export interface ConfiguredStages {
  readonly views: readonly StageView[]
  /** Why the journal was not read; then only the stages of the file are known. */
  readonly fault: string | undefined
}

/** Reads the stages of a configuration from its journal; never fails. */
export async function readConfiguredStages(config: Config): Promise<ConfiguredStages> {
  const files = filePartnersOf(config)
  if (hasNoJournal(config)) return { views: viewStages(files, undefined), fault: undefined }
  try {
    const store = await openTargetStore(config)
    try {
      return { views: viewStages(files, await store.snapshot()), fault: undefined }
    } finally {
      await store.close()
    }
  } catch (cause) {
    const fault = cause instanceof AdapterError ? cause.message : 'the journal could not be read.'
    return { views: viewStages(files, undefined), fault }
  }
}

/** As comments of YAML, which a program that reads the file leaves out. */
export function commentStages({ views, fault }: ConfiguredStages): string {
  const text =
    fault === undefined
      ? `Stages as they are now; what was set with markbridge rollout wins over the file.\n${formatStages(views)}`
      : `Stages that were set with markbridge rollout win over those of this file. They cannot be read here: ${fault}`
  return text
    .split('\n')
    .map((line) => `# ${line}`.trimEnd())
    .join('\n')
}

/** As a member of the document in JSON; null where the journal was not read. */
export function stagesToJson({ views, fault }: ConfiguredStages): object {
  return { stages: fault === undefined ? views.map(toJson) : null, stagesFault: fault ?? null }
}
