import { execFileSync } from 'node:child_process'

/** Command-line tests run the built program, so a run of the tests begins with a build (incremental: about a second). */
export default function build(): void {
  if (process.env['MARKBRIDGE_IS_BUILT'] === undefined)
    execFileSync('npm', ['run', '-s', 'build'], { stdio: 'inherit' })
}
