import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import { expect, onTestFinished, test } from 'vitest'

import { type RunningCli, startCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

/** Starts a demo at a stage, and stops it after the test. */
async function startDemo(...args: string[]): Promise<{ demo: RunningCli; printed: string }> {
  const demo = startCli(['demo', '--port', '0', '--sandbox-port', '0', '--stage', ...args])
  onTestFinished(async () => {
    await demo.stop()
  })
  return { demo, printed: await demo.until(/Stop with/) }
}

async function paste(line: string): Promise<string> {
  return (await promisify(execFile)('sh', ['-c', line])).stdout
}
const lineThat = (printed: string, begins: string): string =>
  printed.split('\n').find((line) => line.startsWith(begins)) ?? ''

interface Effect {
  readonly face: string
}
const effectsOf = async (printed: string): Promise<readonly Effect[]> =>
  JSON.parse(await paste(/curl -s (\S+)/.exec(printed)?.[0] ?? '')) as Effect[]
const countOf = (effects: readonly Effect[], wanted: string): number =>
  effects.filter(({ face }) => face === wanted).length

test('demo --stage canary prints a command that posts batches for many schools, and then counts the marks on V2 and on V3', async () => {
  const { demo, printed } = await startDemo('canary', '--percent', '50')
  expect(printed).toMatch(
    /^sandbox ready \S+\nsandbox v2 ready \S+\nadapter ready \S+\nconsole ready \S+\n\nThe partner is at stage canary: V3 serves 50 % of its schools, and V2 serves the others\.\n/,
  )
  const answers = (await paste(lineThat(printed, 'for school'))).trim().split('\n')
  expect(answers).toEqual(Array.from({ length: 20 }, (_, index) => `school ${3001 + index}: 200`))
  await demo.until(/served: (?:V2 \d+ marks · V3 \d+ marks\n[^]*)/)
  const effects = await effectsOf(printed)
  const [v2, v3] = [countOf(effects, 'V2'), countOf(effects, 'V3')]
  // V2 and V3 each accept 27 of the 30 records of a register.
  expect([v2 % 27, v3 % 27, v2 + v3]).toEqual([0, 0, 540])
  expect(Math.min(v2, v3)).toBeGreaterThan(0)
  await demo.until(new RegExp(`served: V2 ${v2} marks · V3 ${v3} marks\n`))
})

test.each([
  ['legacy', 'V2 serves', 'V2'],
  ['shadow', 'V2 serves', 'V2'],
  ['v3', 'V3 serves', 'V3'],
  ['complete', 'V3 serves', 'V3'],
])(
  'demo --stage %s prints "%s", and the printed curl command posts 27 marks to that interface',
  async (stage, words, face) => {
    const { demo, printed } = await startDemo(stage)
    expect(printed).toContain(`The partner is at stage ${stage}: ${words}.`)
    expect(await paste(lineThat(printed, 'curl -sS'))).toContain('201 Created')
    const effects = await effectsOf(printed)
    expect([effects.length, countOf(effects, face)]).toEqual([27, 27])
    const [v2, v3] = face === 'V2' ? [27, 0] : [0, 27]
    await demo.until(new RegExp(`served: V2 ${v2} marks · V3 ${v3} marks\n`))
    expect(await demo.stop()).toBe(0)
  },
)

test('the rollout command that the demo prints takes the partner back to V2 while the demo runs', async () => {
  const { demo, printed } = await startDemo('v3')
  expect(await paste(lineThat(printed, "'"))).toBe('demo: v3 -> shadow (revision 1).\n')
  const url = /adapter ready (\S+)/.exec(printed)?.[1] ?? ''
  const path = `${url}/V2/Attendance/AttendanceRecords`
  const headers = {
    'Content-Type': 'application/json',
    'Ocp-Apim-Subscription-Key': 'sandbox',
    Authorization: 'bearer sandbox',
  }
  const body = JSON.stringify({
    ...{ Present: true, Absent: false, Learner: '41dba12f-bcce-470b-8ce4-b260ffb62649' },
    AttendableEvent: '29cd4133-b991-43c6-9913-1e96862672ec',
    SchoolAttendanceCode: 'ac00c159-62ce-44b8-ace6-c75caf7505e6',
  })
  const before = performance.now()
  let last: string | undefined
  while (last !== 'V2' && performance.now() - before < 10_000) {
    await fetch(path, { method: 'POST', headers, body })
    last = (await effectsOf(printed)).at(-1)?.face
  }
  expect(last).toBe('V2')
  await demo.until(/served: V2 [1-9]/)
})

test('demo refuses --percent without --stage canary', async () => {
  const { status, stderr } = await runCommand(['demo', '--percent', '20'])
  expect([status, stderr]).toEqual([2, expect.stringContaining('--stage canary')])
})

test('demo ends on SIGINT during a rehearsal, and refuses impossible flags of a rehearsal', async () => {
  const demo = startCli(['demo', '--rehearse', '--stage', 'shadow', '--port', '0', '--sandbox-port', '0'])
  expect(await demo.until(/V3 gets a defect/)).not.toContain('Stage legacy')
  expect(await demo.stop('SIGINT')).toBe(0)
  for (const flags of [
    ['--speed', '9'],
    ['--rehearse', '--stage', 'v3'],
    ['--rehearse', '--journal', 'none'],
    ['--rehearse', '--speed', '0'],
  ])
    expect([flags, (await runCommand(['demo', ...flags])).status]).toEqual([flags, 2])
})
