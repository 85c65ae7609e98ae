import { appendFile, mkdir, readFile, rename, symlink, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { createFileWatch } from '../../src/cli/watch-files.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { ownFile } from './own-file.ts'

const EVERY_MS = 20

/** Watches a file and reads it at each change; `read` collects the texts in order. */
async function watch(
  path: string,
): Promise<{ read: (string | undefined)[]; readonly seen: (text: string | undefined) => Promise<void> }> {
  const files = createFileWatch()
  const read: (string | undefined)[] = []
  const load = async (): Promise<void> => {
    const text = await readFile(path, 'utf8').catch(() => undefined)
    files.onRead(path, text)
    read.push(text)
  }
  await load()
  onTestFinished(files.start(() => void load(), EVERY_MS))
  return { read, seen: (text) => expect.poll(() => read.at(-1), { interval: 5, timeout: 60_000 }).toBe(text) }
}

test('the file watch reads a file again after the file was written, replaced, deleted or created', async () => {
  const folder = await makeFolder()
  const path = join(folder, 'a.yaml')
  await writeFile(path, 'one')
  const { read, seen } = await watch(path)
  await writeFile(path, 'two')
  await seen('two')
  await writeFile(join(folder, 'a.yaml~'), 'three')
  await rename(join(folder, 'a.yaml~'), path)
  await seen('three')
  await unlink(path)
  await seen(undefined)
  await writeFile(path, 'four')
  await seen('four')
  // The watch may also read an empty text, because a file is empty for a moment while it is overwritten.
  expect(read.filter((text) => text !== '')).toEqual(['one', 'two', 'three', undefined, 'four'])
})

test('the file watch follows the links of a Kubernetes ConfigMap', async () => {
  const folder = await makeFolder()
  for (const revision of ['1', '2']) {
    await mkdir(join(folder, `..${revision}`))
    await writeFile(join(folder, `..${revision}`, 'a.yaml'), `revision ${revision}`)
  }
  await symlink('..1', join(folder, '..data'))
  await symlink('..data/a.yaml', join(folder, 'a.yaml'))
  const { seen } = await watch(join(folder, 'a.yaml'))
  await symlink('..2', join(folder, '..data_tmp'))
  await rename(join(folder, '..data_tmp'), join(folder, '..data'))
  await seen('revision 2')
})

test('the file watch waits for the end of a write, and ignores a write that does not change the text', async () => {
  const path = await ownFile('a.yaml', 'one')
  const { read, seen } = await watch(path)
  await writeFile(path, '')
  for (let part = 0; part < 40; part += 1) await appendFile(path, 'x'.repeat(10))
  await seen('x'.repeat(400))
  await writeFile(`${path}~`, 'x'.repeat(400))
  await rename(`${path}~`, path)
  await writeFile(path, 'last')
  await seen('last')
  expect(read[0]).toBe('one')
  expect(read.filter((text) => text === 'x'.repeat(400)).length).toBe(1)
})

test('the file watch notices a change that happens between the first read of the file and the start of the watch', async () => {
  const path = await ownFile('a.yaml', 'new')
  const files = createFileWatch()
  files.onRead(path, 'old')
  const { promise, resolve } = Promise.withResolvers<string>()
  onTestFinished(files.start(() => resolve('changed'), EVERY_MS))
  expect(await promise).toBe('changed')
})
