import { glob, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { runCommand } from '../cli/run-command.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Returns the arguments of each `markbridge` command that a document shows on a line of its own or between backticks. */
async function commandsIn(file: string): Promise<string[]> {
  const text = await readFile(root + file, 'utf8')
  const lines = text.replaceAll(/\\\n\s*/g, '').split('\n')
  const quoted = [...text.matchAll(/`([^`\n]+)`/g)].map(([, inner = '']) => inner)
  const named = /^(?:\$ )?(?:npm run -s markbridge -- |markbridge |node dist\/cli\/main\.js )([a-z].*)$/
  return [...lines, ...quoted].flatMap((line) => named.exec(line)?.[1] ?? [])
}

const nameOf = (command: string): string =>
  /^(?:journal |config |rollout |compare )?[a-z]+/.exec(command)?.[0] ?? ''

test('every command in the documents exists and has the options shown', async () => {
  const files: string[] = []
  for await (const file of glob(['*.md', 'docs/**/*.md'], { cwd: root })) files.push(file)
  const commands = (await Promise.all(files.filter((file) => file !== 'CHANGELOG.md').map(commandsIn))).flat()
  expect(commands.length).toBeGreaterThan(60)
  const helpOf = new Map<string, string>()
  for (const name of new Set(commands.map(nameOf)))
    helpOf.set(name, (await runCommand([...name.split(' '), '--help'])).stdout)
  for (const command of commands) {
    const name = nameOf(command)
    expect(helpOf.get(name)).toContain(`Usage: markbridge ${name} `)
    for (const [option] of command.replace(/#.*$/, '').matchAll(/(?<=\s)--[a-z0-9-]+/g))
      expect([command, helpOf.get(name)?.includes(option)]).toEqual([command, true])
  }
})

test('the commands of the README use different ports, so that all of them can run at the same time', async () => {
  const taken = (await commandsIn('README.md')).flatMap((command) =>
    [...command.matchAll(/--(?:sandbox-|v2-)?port (\d+)/g)].map(([, port]) => Number(port)),
  )
  // The ports 8080 and 4010 belong to npm start, which runs at the same time.
  const all = [8080, 4010, ...taken]
  expect(taken.length).toBeGreaterThan(3)
  expect(all).toEqual([...new Set(all)])
})
