import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import { expect, onTestFinished, test, vi } from 'vitest'
import { parse, stringify } from 'yaml'

import { createApp } from '../../src/app.ts'
import { loadConfig, parseConfig } from '../../src/config/index.ts'
import { resolveSecrets } from '../../src/config/secret.ts'
import { requestKinds, stages } from '../../src/rollout/stage.ts'
import { type StageRule, stageTable } from '../../src/rollout/decide.ts'
import { runCommand } from '../cli/run-command.ts'

const pages = ['migration', 'rehearsal'].map((name) =>
  readFile(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8'),
)
const text = (await Promise.all(pages)).join('\n')

/** Returns the rows of the table whose heading row begins with a name, cell by cell. */
function rowsOf(name: string): string[][] {
  const [, table = ''] =
    new RegExp(`^\\| ${name} \\|[^\\n]*\\n\\|[-|]+\\n((?:\\|[^\\n]*\\n)+)`, 'm').exec(text) ?? []
  return table
    .trim()
    .split('\n')
    .map((row) => row.slice(2, -2).split(' | '))
}

/** Returns the contents of the fenced blocks of a language. */
const blocks = (language: string): string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, block = '']) => block)

const servers = { v2: 'V2', v3: 'V3', unit: 'by school' }
const comparisons = { nothing: '', reply: ', reply', answers: ', answers', readBack: ', read back' }
const cellOf = ({ serves, compares }: StageRule): string => `${servers[serves]}${comparisons[compares]}`

/** The name that docs/migration.md gives each kind of request. */
const kindNames: Readonly<Record<(typeof requestKinds)[number], string>> = {
  batch: 'batch',
  record: 'single record',
  readFilter: 'read by filter',
  readKey: 'read by key',
  documents: 'documents',
  registrations: 'registrations',
  otherV2: 'other paths of V2',
  v3Path: 'paths of V3',
}

/** A value that is valid for every secret in an example. */
const KEY = 'ab'.repeat(32)

test('the table in docs/migration.md matches the stage table in the code', () => {
  const expected = requestKinds.map((kind) => [
    kindNames[kind],
    ...stages.map((stage) => cellOf(stageTable[stage][kind])),
  ])
  const [first = ''] = /^\| request \|[^\n]*$/m.exec(text) ?? []
  expect(first).toBe(`| request | ${stages.map((stage) => `\`${stage}\``).join(' | ')} |`)
  expect(rowsOf('request').map(([kind = '', ...cells]) => [kind.replace(/: .*/, ''), ...cells])).toEqual(
    expected,
  )
})

test('every example configuration in docs/migration.md is valid', async () => {
  expect(blocks('yaml').length).toBeGreaterThan(1)
  for (const example of blocks('yaml')) {
    const env = (): string => KEY
    const { value, faults } = await resolveSecrets(parse(example), {
      env,
      file: () => Promise.resolve(undefined),
    })
    expect(parseConfig(value, faults).partners.length).toBeGreaterThan(0)
  }
})

/** A command of the page, with the output that the page shows for it. */
interface Shown {
  readonly env: Readonly<Record<string, string>>
  readonly args: readonly string[]
  readonly output: string
}

const commands = blocks('console')
  .flatMap((block) => block.split(/^\$ /m).slice(1))
  .map((shown): Shown => {
    const [line = '', ...output] = shown.split('\n')
    const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
    const at = words.indexOf('markbridge')
    const env = Object.fromEntries(
      words.slice(0, at).map((word): [string, string] => {
        const [name = '', value = ''] = word.split('=')
        return [name, value]
      }),
    )
    return { env, args: words.slice(at + 1), output: settled(output.join('\n')) }
  })

/**
 * Replaces text that differs between two executions of a command: instances that the command waits for, times, the system user, and the
 * width of columns.
 */
function settled(output: string): string {
  return (
    output
      .replaceAll(/^markbridge: waiting for .*\n/gm, '')
      // The advice contains this line only after the adapter has read the change of the stage, so its presence depends on timing.
      .replaceAll(/\n {2}- A batch may have been relayed to V2 unrecorded, .*/g, '')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '{time}')
      // The page shows advice with the verdict `ready`, but without writes of a client this test needs `--despite-advice`.
      .replaceAll(/\(despite the advice: .*\)/g, '(advice: ready)')
      .replaceAll(/Try again in [^,]*,/g, 'Try again in {wait},')
      .replaceAll(/\bos:[^\s:,]+/g, 'os:{user}')
      .replaceAll(/(?<=\S) {2,}/g, '  ')
      .trim()
  )
}

/** Writes an example file with its own journal, and runs an adapter with this file. */
async function prepare(example: object): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const { rollout = {}, journal } = example as { rollout?: object; journal?: object }
  const path = join(folder, 'markbridge.yaml')
  const own = {
    ...example,
    listen: { port: 0 },
    journal: { ...journal, url: `sqlite:${join(folder, 'journal.db')}` },
    rollout: { ...rollout, resendWindowMs: 4_000 },
  }
  for (const name of ['ACME_V3_KEY', 'MARKBRIDGE_JOURNAL_KEY']) vi.stubEnv(name, KEY)
  await writeFile(path, stringify(own))
  const app = createApp(await loadConfig(path), { logLevel: 'silent' })
  await app.listen()
  onTestFinished(() => app.close())
  return path
}

const isEarly = (output: string): boolean => output.includes('rollout.resendWindowMs')

/**
 * Returns true if a repetition of the command may print what the page shows, once the resend window is over or the adapter has read the
 * change.
 */
const mayChange = (shown: Shown, output: string): boolean =>
  isEarly(output) ? !isEarly(shown.output) : output.includes('have not acknowledged')

test('every command prints the output that docs/migration.md shows', async () => {
  const [first = '', second = ''] = blocks('yaml')
  const paths: Readonly<Record<string, string>> = {
    'markbridge.yaml': await prepare(parse(first) as object),
    'two-people.yaml': await prepare(parse(second) as object),
  }
  expect(commands.length).toBeGreaterThan(12)
  const toV3 = (args: readonly string[]): readonly string[] =>
    args[1] === 'set' && args[3] !== 'shadow' ? [...args, '--despite-advice'] : args
  const run = async ({ args, env }: Shown): Promise<string> => {
    const { stdout, stderr } = await runCommand(
      toV3(args).map((word) => paths[word] ?? word),
      env,
    )
    const named = Object.entries(paths).reduce(
      (output, [name, path]) => output.replaceAll(path, name),
      stdout + stderr,
    )
    return settled(named)
  }
  for (const shown of commands) {
    let output = await run(shown)
    while (mayChange(shown, output)) {
      await delay(100)
      output = await run(shown)
    }
    expect([shown.args.join(' '), output]).toEqual([shown.args.join(' '), shown.output])
  }
})
