import type { Command } from 'commander'

import { type Learned, learnedOf, learnRecordings } from '../../compare/learn/learned.ts'
import { formatPatch, propose } from '../../compare/learn/propose.ts'
import type { Config } from '../../config/index.ts'
import { readRecordingKey } from '../files.ts'
import { type Target, withTarget } from '../options.ts'
import { useStore } from '../rollout/open-store.ts'
import { findPartner, loadTarget } from '../target.ts'
import { type Answer, answerWith } from '../text.ts'

const examples = `
Proposes a patch of the configuration from V2's replies: layout, quirks and Type
strings, each line with the counts behind it, and V2's error messages. A setting
is not proposed if its evidence is missing or contradictory.
Generic OData clients (Microsoft.OData.Client, SAP Cloud SDK, UI5 V4, Olingo:
they name an OData version or accept multipart/mixed) need layout: auto or
nested; a note says so if they got flat replies.

Examples:
  markbridge compare learn acme --config markbridge.yaml
  markbridge compare learn acme --recording ./recordings --key env:RECORDING_KEY

A running adapter counts exchanges at stage shadow, and stores no values.
Exit status: 0 done; 3 nothing was observed; 2 wrong usage or configuration.`

export function addCompareLearn(command: Command, exitWith: (status: number) => void): void {
  withTarget(command, 'configuration file with the partner')
    .argument('<partner>', 'id of the partner')
    .option('--recording <dir>', 'read recordings in place of the counts')
    .option('--key <source>', 'open the recordings with the key of env:NAME or file:path')
    .addHelpText('after', examples)
    .action(answerWith(exitWith, runCompareLearn))
}

interface CompareLearnOptions extends Target {
  readonly recording?: string
  readonly key?: string
}

/** Prints the settings that the replies of V2 suggest for a partner. The exit status is 3 if no exchange was observed. */
async function runCompareLearn(partner: string, options: CompareLearnOptions): Promise<Answer> {
  const config = await loadTarget(options)
  const settings = findPartner(config, partner)
  const learned = await readLearned(partner, config, options)
  const proposals = propose(learned, settings)
  if (learned.size === 0)
    console.error(
      'markbridge: nothing was observed, so no setting is proposed. Serve the partner at stage shadow, where exchanges are counted, or read recordings with --recording <dir>.',
    )
  return {
    document: { partner, ...proposals },
    text: () => formatPatch(partner, proposals),
    status: learned.size === 0 ? 3 : 0,
  }
}

async function readLearned(
  partner: string,
  config: Config,
  { recording, key }: CompareLearnOptions,
): Promise<Learned> {
  if (recording !== undefined) return learnRecordings(recording, await readRecordingKey(key))
  return useStore(config, async ({ evidence }) => learnedOf(await evidence.read(partner)))
}
