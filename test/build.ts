import { execFileSync } from 'node:child_process'

/** Builds the program before a test run, because tests of the command line run the built program. An incremental build takes a second. */
export default function build(): void {
  if (process.env['MARKBRIDGE_IS_BUILT'] === undefined)
    execFileSync('npm', ['run', '-s', 'build'], { stdio: 'inherit' })
}
