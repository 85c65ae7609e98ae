import { spawnSync } from 'node:child_process'

/**
 * `npm run test:long`, half an hour and more: all tests with longer draws and those that the other runs leave out (builds with a
 * guard broken), then the fault run, the reads, the comparisons and the broken requests at full length. Each part runs, whatever became of those
 * before. Exit status 1 where one of them failed.
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
