import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline/promises'

import { type Command, InvalidArgumentError } from 'commander'

import { findConflicts } from '../../config/conflicts.ts'
import { CONFIG_FILE } from '../../config/environment.ts'
import { loadConfig } from '../../config/index.ts'
import { listFaults } from '../../config/parse.ts'
import { partnerSchema } from '../../config/partner-schema.ts'
import { addPartner, readYaml } from '../../config/yaml.ts'
import { AdapterError, describeFileError } from '../../errors.ts'
import { expectPlace, readKeySource, writeResult } from '../files.ts'
import { readAs, readBase } from '../options.ts'
import { type Answer, answerWith } from '../text.ts'

const examples = `
Examples:
  markbridge init
  markbridge init --partner acme --v3 https://v3.example \\
    --v2 https://v2.example --subscription-key env:ACME_V2_KEY
  markbridge init --partner demo --v3 http://127.0.0.1:4010 --v2 "" \\
    --subscription-key ""
  markbridge init --add --partner beta --subscription-key env:BETA_V2_KEY

Asks for each value that no flag gives; "" leaves out V2 or the key. The file
contains only the SHA-256 of the key. The partner begins at stage legacy if V2
is given, and at stage v3 otherwise. --add adds a partner to an existing file,
whose comments and other partners stay.
Exit status: 0 the file was written, 2 wrong usage, or the file exists already.`

export function addInit(command: Command, exitWith: (status: number) => void): void {
  command
    .option('--partner <id>', 'name of the partner in logs and metrics', readId)
    .option('--v3 <url>', 'base address of V3', readAddress)
    .option('--v2 <url>', 'base address of V2, while it still serves the partner', readAddress)
    .option('--subscription-key <source>', "the partner's V2 key: env:NAME or file:path")
    .option('--out <file>', 'file to write', CONFIG_FILE)
    .option('--force', 'replace the file of --out')
    .option('--add', 'add the partner to the file of --out, which has the address of V3')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples)
    .action(
      answerWith(exitWith, (options: InitOptions) =>
        options.add === true ? extend(options) : create(options),
      ),
    )
}

/** The values of the flags. An empty string leaves the setting out of the file. */
interface InitOptions {
  readonly partner?: string
  readonly v3?: string
  readonly v2?: string
  readonly subscriptionKey?: string
  readonly out: string
  readonly force?: boolean
  readonly add?: boolean
}

const readId = readAs(partnerSchema.shape.id)

const readAddress = (text: string): string => (text === '' ? '' : readBase(text).href)

async function create(options: InitOptions): Promise<Answer> {
  const { out, force } = options
  await expectPlace(out, force, 'add the partner with --add, or replace the file with --force')
  const answers = await askForRest(options)
  const text = configurationOf(answers)
  await mkdir(dirname(out), { recursive: true })
  await writeResult(out, text, force)
  const { partner } = answers
  const flag = flagOf(out)
  return {
    document: { file: out, partner, stage: answers.v2 === '' ? 'v3' : 'legacy' },
    text: () =>
      `${out} is written for the partner ${partner}. Next:\n  markbridge doctor${flag}\n  markbridge serve${flag}`,
  }
}

/** Adds a partner to an existing file. Throws `ADP_CONFIGURATION` if the file has faults, and `ADP_USAGE` if the partner does not fit. */
async function extend(options: InitOptions): Promise<Answer> {
  const { out } = options
  if ((options.v3 ?? options.force) !== undefined)
    throw new AdapterError(
      'ADP_USAGE',
      '--add cannot be combined with --v3 or --force, because the file stays and has the address of V3. Nothing was written. Leave these options out.',
    )
  const { upstreams } = await loadConfig(out, {}, { secretsOf: [] })
  const { partner, v2, key } = await askForRest({ v2: '', ...options, v3: '' })
  const stage = v2 === '' && upstreams.v2 === undefined ? 'v3' : 'legacy'
  const text = addPartner(await readFile(out, 'utf8'), {
    id: partner,
    match: key === '' ? { any: true } : { subscriptionKeySha256: sha256(key) },
    stage,
    ...(v2 === '' ? {} : { v2: { baseUrl: v2 } }),
  })
  if (text === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      `${out} has no list of partners, so one partner gets every request. Nothing was written. Add the section partners to the file.`,
    )
  const faults = findConflicts(readYaml(text).value)
  if (faults.length > 0)
    throw new AdapterError(
      'ADP_USAGE',
      `The partner ${partner} cannot be added to ${out}. Nothing was written. Choose another name or key:\n${listFaults(faults, out)}`,
    )
  // Writes into the existing file, so that the file keeps its owner and permissions. The service may run as another user than the operator.
  await writeFile(out, text).catch((cause: unknown) => {
    throw new AdapterError(
      'ADP_USAGE',
      `${out} cannot be written: ${describeFileError(cause)}. Nothing was written. Correct the permissions.`,
      { cause },
    )
  })
  return {
    document: { file: out, partner, stage },
    text: () =>
      `The partner ${partner} is added to ${out}. A running adapter reads the file after SIGHUP. Next:\n  markbridge doctor${flagOf(out)}`,
  }
}

const flagOf = (out: string): string => (out === CONFIG_FILE ? '' : ` --config ${out}`)

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

interface Answers {
  readonly partner: string
  readonly v3: string
  readonly v2: string
  /** The subscription key of the partner. If empty, the partner matches any key. */
  readonly key: string
}

const readKey = async (source: string, what: string): Promise<string> =>
  source === '' ? '' : readKeySource(source, what)

/** Asks on standard error for each value that no flag gives, until the answer is valid. The end of the input selects the defaults. */
async function askForRest(given: InitOptions): Promise<Answers> {
  const { subscriptionKey } = given
  const key = subscriptionKey === undefined ? undefined : await readKey(subscriptionKey, '--subscription-key')
  const input = createInterface({ input: process.stdin, output: process.stderr })
  const lines = input[Symbol.asyncIterator]()
  const ask = async (
    known: string | undefined,
    question: string,
    read: (text: string) => string | Promise<string>,
    preset = '',
  ): Promise<string> => {
    if (known !== undefined) return known
    process.stderr.write(`${question}${preset === '' ? '' : ` [${preset}]`}: `)
    const { value, done } = await lines.next()
    // A terminal shows the line end that the user types. Piped input does not, so the line end is written here.
    if (!process.stdin.isTTY) process.stderr.write('\n')
    const answer = done === true ? '' : value.trim()
    try {
      return await read(answer === '' ? preset : answer)
    } catch (cause) {
      const isRefused = cause instanceof InvalidArgumentError || cause instanceof AdapterError
      if (!isRefused || done === true) throw cause
      console.error(cause.message)
      return ask(known, question, read, preset)
    }
  }
  try {
    return {
      partner: await ask(given.partner, 'Name of the partner', readId, 'acme'),
      v3: await ask(given.v3, 'Base address of V3', readAddress, 'http://127.0.0.1:4010'),
      v2: await ask(given.v2, 'Base address of V2 (empty: none)', readAddress),
      key: await ask(key, "The partner's V2 key, as env:NAME or file:path (empty: any key)", (source) =>
        readKey(source, 'The answer'),
      ),
    }
  } finally {
    input.close()
  }
}

function configurationOf({ partner, v3, v2, key }: Answers): string {
  const [stage, upstreamV2] =
    v2 === ''
      ? ['v3', '  # v2: { baseUrl: https://v2.example } # for the stages legacy, shadow and canary']
      : ['legacy', `  v2: { baseUrl: ${JSON.stringify(v2)} } # serves at legacy, shadow and canary`]
  const match =
    key === ''
      ? '{ any: true } # every subscription key; or { subscriptionKeySha256: <printf %s "$KEY" | sha256sum> }'
      : `{ subscriptionKeySha256: ${sha256(key)} } # of the partner's V2 key`
  return `# yaml-language-server: $schema=./markbridge.schema.json
# Configuration of Markbridge. For an editor that explains the keys, run: markbridge config schema > markbridge.schema.json
# markbridge config print lists all keys with their defaults. Never write secrets here; use { env: NAME } or { file: path }.

listen:
  host: 127.0.0.1 # a proxy in front of the adapter terminates TLS
  port: 8080

upstreams:
  v3: { baseUrl: ${JSON.stringify(v3)} }
${upstreamV2}

journal:
  # The adapter stores each write here before it sends the write. Several machines share postgres://user@host/database instead.
  url: sqlite:./data/journal.db
  # The key encrypts the requests and replies of clients. Without a key they are stored unencrypted. Create a key with: openssl rand -hex 32
  # keys: [{ id: k1, key: { env: MARKBRIDGE_JOURNAL_KEY } }]
  replayForMs: 24h # how long a resent batch gets its stored reply
  keepRecordsMs: 90d

partners:
  - id: ${partner}
    match: ${match}
    # The first stage of the partner: legacy, shadow, canary, v3 or complete. markbridge rollout set takes the partner forward.
    stage: ${stage}
    # canary: { header: X-School } # names the school, for tokens without the claim organisation
    changeProcessName: Markbridge # the name of the program in the marks on V3
    v3:
      # By default the client's key and token go on to V3.
      # subscriptionKey: { env: V3_KEY }
      # auth: { mode: clientCredentials, tokenUrl: https://…, clientId: …, clientSecret: { env: V3_SECRET }, scope: … }
      writeMode: single # auto: one $batch where V3 accepts it
      budgetMs: 90s # for all records of one batch
`
}
