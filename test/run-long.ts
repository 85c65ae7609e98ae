import { spawnSync } from 'node:child_process'

/**
 * `npm run test:long` takes at least half an hour. It runs all tests with more random cases, including the tests on a deliberately broken
 * product, and then the fault run, the reads, the comparisons and the broken requests at full length. A failed part does not stop the
 * others. The exit status is 1 if a part failed.
 */
const parts: readonly (readonly [name: string, args: readonly string[], env?: Record<string, string>])[] = [
  ['tests', ['test'], { MARKBRIDGE_LONG_TESTS: '1' }],
  ['slow tests', ['run', 'test:slow'], { MARKBRIDGE_LONG_TESTS: '1' }],
  ['faults', ['run', 'test:faults']],
  ['reads', ['run', 'test:reads']],
  ['comparison', ['run', 'test:compare']],
  ['broken comparers', ['run', 'test:compare', '--', '--defects']],
  ['walls', ['run', 'test:walls']],
  ['holds', ['run', 'test:walls', '--', '--holds']],
]

const failed = parts.filter(([name, args, env = {}]) => {
  console.log(`\n${name}: npm ${args.join(' ')}`)
  return spawnSync('npm', [...args], { stdio: 'inherit', env: { ...process.env, ...env } }).status !== 0
})
const names = failed.map(([name]) => name).join(', ')
console.log(failed.length === 0 ? '\nall parts passed' : `\nfailed: ${names}`)
process.exitCode = failed.length === 0 ? 0 : 1
