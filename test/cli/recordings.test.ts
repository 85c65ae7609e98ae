import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { findRecordings } from '../../src/cli/recordings/read-recordings.ts'
import { runCommand } from './run-command.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'markbridge-'))
  await mkdir(join(folder, 'b', '.git'), { recursive: true })
  for (const name of ['c.txt', 'a.txt', '.hidden', 'b/2.txt', 'b/.git/config'])
    await writeFile(join(folder, name), name)
})
afterAll(() => rm(folder, { recursive: true }))

test('a folder stands for the files in it and below, in order, without hidden ones, however it is named', async () => {
  const here = `./${relative(process.cwd(), folder)}`
  for (const path of [folder, `${folder}/`, here]) {
    const { isFolder, files } = await findRecordings(path)
    expect([isFolder, files.map(({ name }) => relative(folder, name))]).toEqual([
      true,
      ['a.txt', 'b/2.txt', 'c.txt'],
    ])
  }
  const { isFolder, files } = await findRecordings(join(folder, '.hidden'))
  expect([isFolder, (await files[0]?.read())?.toString()]).toEqual([false, '.hidden'])
})

test('links to files are read; links to folders, links that lead nowhere and pipes are listed as skipped', async () => {
  const links = await mkdtemp(join(tmpdir(), 'markbridge-'))
  await symlink(folder, join(links, 'folder'))
  await symlink(join(folder, 'c.txt'), join(links, 'file'))
  await symlink(join(links, 'none'), join(links, 'lost'))
  await symlink(join(links, 'circle'), join(links, 'circle'))
  await symlink('/dev/zero', join(links, 'zero'))
  execFileSync('mkfifo', [join(links, 'pipe')])
  const { files } = await findRecordings(links)
  expect(files.map(({ name, skip }) => `${relative(links, name)}: ${skip ?? 'read'}`)).toEqual([
    'circle: a symbolic link that leads nowhere',
    'file: read',
    'folder: a symbolic link to a folder',
    'lost: a symbolic link that leads nowhere',
    'pipe: a named pipe',
    'zero: a symbolic link to a device',
  ])
  expect((await files[1]?.read())?.toString()).toBe('c.txt')
  await rm(links, { recursive: true })
})

test.each([
  ['a named pipe', (path: string) => void execFileSync('mkfifo', [path])],
  ['a device', (path: string) => symlink('/dev/zero', path)],
])('check refuses %s at once', async (kind, make) => {
  const path = join(folder, kind)
  await make(path)
  expect(await runCommand(['check', path])).toEqual({
    status: 2,
    stdout: '',
    stderr: `markbridge: ${path} is ${kind}. Name a regular file or a folder, or - to read standard input.\n`,
  })
  await rm(path)
})

// The memory of a process is a regular file that not even root can read from its start.
test.runIf(process.platform === 'linux')(
  'a file that cannot be read is listed with its cause, the others are checked, and the status is 2',
  async () => {
    const mixed = await mkdtemp(join(tmpdir(), 'markbridge-'))
    const sound = join(process.cwd(), 'fixtures/class-register/body.txt')
    for (const name of ['1', '3']) await symlink(sound, join(mixed, name))
    await symlink('/proc/self/mem', join(mixed, '2'))
    const { status, stdout } = await runCommand(['check', mixed])
    expect([status, stdout.replaceAll(mixed, 'M').match(/^(?:M|\d rec).*/gm)]).toEqual([
      2,
      [
        'M/1: 19690 bytes, 30 records in 1 changeset(s)',
        'M/2: skipped, M/2 cannot be read: EIO.',
        'M/3: 19690 bytes, 30 records in 1 changeset(s)',
        '2 recordings: 2 accepted, 0 refused in part, 0 refused as a whole; 1 other file skipped',
      ],
    ])
    await rm(mixed, { recursive: true })
  },
)
