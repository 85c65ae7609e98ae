import { Argument, type Command, InvalidArgumentError } from 'commander'
import * as z from 'zod'

import { AdapterError } from '../../errors.ts'
import {
  type CertifyOptions,
  certifyPartner,
  verifyCertificate,
  type VerifyOptions,
} from '../rollout/certificate.ts'
import { change, dismissInstance, setStage } from '../rollout/change.ts'
import { listClients } from '../rollout/leave.ts'
import { adviseStep, listStages, readHistory, showStage, verifyTrail } from '../rollout/show.ts'
import { MAX_REASON, parseUnits, stages, type StepOptions, unitRule } from '../../rollout/stage.ts'
import { readAs, readCount, readPercent, type Target, withTarget } from '../options.ts'
import { type Answer, answerWith } from '../text.ts'

const examples = `
Examples:
  markbridge rollout ls --config markbridge.yaml
  markbridge rollout show acme --json
  markbridge rollout set acme canary --percent 5 --dry-run
  markbridge rollout set acme canary --percent 5 --reason "first schools"
  markbridge rollout set acme canary --always school-1,school-2 --reason "pilot"
  markbridge rollout set acme shadow --restart-evidence --reason "new mapping"
  markbridge rollout back acme
  MARKBRIDGE_OPERATOR_TOKEN=… markbridge rollout approve acme
  markbridge rollout certify acme --out acme.json --signing-key file:signing.pem
  markbridge rollout verify acme.json --public-key signing.pub.pem
The stages are legacy, shadow, canary, v3 and complete. A step forward goes to
the next stage, and waits at most 10 s until every instance has drained; Ctrl+C
withdraws it. A step that the advice does not call ready needs --despite-advice.
back never waits: it goes from canary, v3 and complete to shadow, and from
shadow to legacy. If the configuration names operators,
MARKBRIDGE_OPERATOR_TOKEN says who acts. Without it, the user of the operating
system acts.
Exit status: 0 done; 1 refused or failed (instances did not drain, the stage
changed meanwhile, the audit trail is broken, a certificate fails); 2 wrong
usage or configuration; 4 the step waits for the approval of another operator.`

const DRY_RUN = 'report what would happen, and change nothing'

const examplesOf = (...commands: readonly string[]): string =>
  ['\nExamples:', ...commands.map((command) => `  markbridge rollout ${command}`)].join('\n')

export function addRollout(rollout: Command, exitWith: (status: number) => void): void {
  rollout.addHelpText('after', examples)
  const target = (command: Command): Command =>
    withTarget(command, 'configuration file with the partners, the journal and the operators')
  const answer = <Args extends readonly unknown[]>(work: (...args: Args) => Promise<Answer>) =>
    answerWith(exitWith, work)
  const step = (kind: 'back' | 'approve') =>
    answer((partner: string, options: Target & StepOptions) => change(partner, { ...options, kind }, options))
  target(rollout.command('ls'))
    .description('list the stage of each partner, and whether it comes from the file or from the journal')
    .action(answer(listStages))
  target(rollout.command('show').argument('<partner>', 'id of the partner'))
    .description('show the stage of a partner, a pending change, and the advice on the next step')
    .option('--school <name>', 'also say which side serves this school, and by which rule')
    .addHelpText('after', examplesOf('show acme', 'show acme --school school-7 --json'))
    .action(answer(showStage))
  target(
    rollout
      .command('set')
      .argument('<partner>', 'id of the partner')
      .addArgument(new Argument('<stage>', 'the new stage').choices(stages)),
  )
    .description('change the stage of a partner; a step forward waits for the instances, or for an approval')
    .option(
      '--percent <n>',
      'canary: percentage of the units that V3 serves (default: unchanged; on entry, the percentage in the file)',
      readPercent,
    )
    .option(
      '--always <units>',
      'canary: units that V3 always serves, separated by commas; "" for none',
      readUnits,
    )
    .option(
      '--never <units>',
      'canary: units that V2 always serves, separated by commas; "" for none',
      readUnits,
    )
    .option('--despite-hold', 'take a step forward within the cool-down of a guard')
    .option('--despite-advice', 'take a step forward that the advice does not call ready')
    .option('--restart-evidence', 'restart the evidence for the next step, at the same stage and percentage')
    .option('--dry-run', DRY_RUN)
    .option('--reason <text>', 'reason for the audit trail; required without --dry-run', readReason)
    .addHelpText(
      'after',
      examplesOf(
        'set acme canary --percent 5 --dry-run',
        'set acme canary --percent 5 --reason "first schools"',
      ),
    )
    .action(answer(setStage))
  target(rollout.command('back').argument('<partner>', 'id of the partner'))
    .description('go back at once: to shadow, and from shadow to legacy')
    .option('--dry-run', DRY_RUN)
    .option('--reason <text>', 'reason for the audit trail', readReason)
    .addHelpText('after', examplesOf('back acme', 'back acme --reason "V3 fails"'))
    .action(step('back'))
  target(rollout.command('approve').argument('<partner>', 'id of the partner'))
    .description('approve and take the step forward that another operator has proposed')
    .option('--despite-hold', 'take the step within the cool-down of a guard')
    .option('--despite-advice', 'take the step although the advice does not call the step ready')
    .option('--reason <text>', 'reason for the audit trail', readReason)
    .action(step('approve'))
  target(rollout.command('dismiss').argument('<instance>', 'number of a lost instance', readCount))
    .description('confirm that a lost instance is off, so that it no longer blocks steps to V3')
    .requiredOption(
      '--reason <text>',
      'how you know that the instance is off, for the audit trail',
      readReason,
    )
    .action(answer(dismissInstance))
  target(rollout.command('history').argument('[partner]', 'only this partner'))
    .description('print the audit trail, oldest first')
    .option('--limit <n>', 'only the newest entries', readCount)
    .addHelpText('after', examplesOf('history', 'history acme --limit 10'))
    .action(answer(readHistory))
  target(rollout.command('advise').argument('<partner>', 'id of the partner'))
    .description('say whether the next step forward is advised, and what is missing')
    .addHelpText('after', examplesOf('advise acme', 'advise acme --json'))
    .action(answer(adviseStep))
  target(rollout.command('leave').argument('<partner>', 'id of the partner'))
    .description('list the clients that still write through V2, each with its latest request')
    .option('--subscription-key <source>', "a client's key, to find the client: env:NAME or file:path")
    .option('--token <source>', "a client's token: env:NAME or file:path")
    .addHelpText('after', examplesOf('leave acme', 'leave acme --json'))
    .action(answer(listClients))
  target(rollout.command('certify').argument('<partner>', 'id of the partner'))
    .description(
      'sign the stage, the advice, the evidence of every stage, the history and the end of the audit trail',
    )
    .option('--out <file>', 'write the certificate to this file')
    .option('--force', 'replace the file of --out')
    .requiredOption('--signing-key <source>', 'the private key: env:NAME or file:path (Ed25519, PEM)')
    .action(async (partner: string, options: CertifyOptions) =>
      exitWith(await certifyPartner(partner, options)),
    )
  target(rollout.command('verify').argument('[certificate]', 'also check this file of rollout certify'))
    .description(
      'check that the entries of the audit trail form a chain, and check a certificate if one is named',
    )
    .option('--public-key <file>', 'the key that must have signed the certificate (Ed25519, PEM)')
    .option('--offline', 'check the signature of the certificate alone, without a journal')
    .action(
      answer(async (file: string | undefined, options: VerifyOptions) => {
        if (file !== undefined) return verifyCertificate(file, options)
        if ((options.publicKey ?? options.offline) !== undefined)
          throw new AdapterError(
            'ADP_USAGE',
            '--public-key and --offline need a certificate. Nothing was checked. Name the file of the certificate.',
          )
        return verifyTrail(options)
      }),
    )
}

function readUnits(text: string): readonly string[] {
  const units = parseUnits(text)
  if (units !== undefined) return units
  throw new InvalidArgumentError(unitRule)
}

const readReason = readAs(
  z.string().trim().min(1).max(MAX_REASON),
  `The reason must have 1 to ${MAX_REASON} characters.`,
)
