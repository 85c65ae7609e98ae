import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

import { keepCompiledCode } from './test/support/keep-compiled-code.ts'
import { keepInMemory } from './test/support/keep-in-memory.ts'
import { isLongRun } from './test/support/long-run.ts'

/** Those that take by far the longest. Vitest goes by the size of a file where it knows no better; some of these are short. */
const longest = new RegExp(
  `/(?:${[
    'browser/served-console',
    'cli/(?:demo-stages|rollout|workers/(?:reload|serve-workers))',
    'docs/recipes',
    'e2e/(?:back-under-load|compare-(?:instances|learn)|fixtures|guards|marker-sweep|package|stages-live)',
    'faults/short',
    'journal/(?:postgres|sqlite)',
    'peers/cap',
    'simulation/simulation',
  ].join('|')})(?:\\.slow)?\\.test\\.ts$`,
)

/** Begins with the longest: the others fit beside them. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification): boolean => longest.test(moduleId)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

/** Set by `npm run test:coverage`. */
const countsCoverage = process.env['NODE_V8_COVERAGE'] !== undefined
keepCompiledCode()
keepInMemory()

const every = 'test/**/*.test.ts'
/** Tests that start many processes, kill and pause them, or run for seconds under load (`npm run test:slow`). */
const slow = 'test/**/*.slow.test.ts'
/** What takes minutes, and has a short version in the others (`npm run test:long`). */
const long = 'test/**/*.long.test.ts'

function chooseTests(mode: string): { readonly include: string[]; readonly exclude: string[] } {
  switch (mode) {
    case 'slow':
      return { include: isLongRun ? [slow, long] : [slow], exclude: [] }
    case 'all':
      return { include: [every], exclude: [long] }
    default:
      return { include: [every], exclude: [slow, long] }
  }
}

export default defineConfig(({ mode }) => ({
  test: {
    ...chooseTests(mode),
    globalSetup: ['test/build.ts'],
    setupFiles: [
      'test/support/limit-stacks.ts',
      ...(countsCoverage ? ['test/branch-coverage/take-coverage.ts'] : []),
    ],
    // Processes and servers start slowly on a machine that is busy: only what hangs may end at these limits.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // Where nobody looks on: a test of real processes and clocks that a busy machine made late is run again, and named by the reporter.
    retry: process.env['CI'] === undefined ? 0 : 2,
    expect: { poll: { timeout: 60_000 } },
    // Many tests wait for time to pass: more of them than cores keep both busy.
    maxWorkers: 4,
    // Of the tests of one file that may run side by side: each of them starts processes of its own.
    maxConcurrency: 2,
    // No module has state of its own: loading all of them anew for each file would take longer than most files do.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    // The client that test/clients use tells every part that it cannot name a class for. A configuration of the shell is not the one under test.
    env: { SAP_CLOUD_SDK_LOG_LEVEL: 'error', MARKBRIDGE_CONFIG: '' },
    // All modules run from the source, as threads and programs do: test/branch-coverage/run.ts adds up what each of them counted.
    experimental: { viteModuleRunner: !countsCoverage },
  },
}))
