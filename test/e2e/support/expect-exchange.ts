import { writeFile } from 'node:fs/promises'

import { expect } from 'vitest'

import type { Fixture } from './fixture.ts'
import { headerOf, type RawMessage } from './raw-message.ts'
import type { ScriptedUpstream } from './scripted-upstream.ts'
import { expectTemplate, toTemplate } from './template.ts'

/** Headers that a reply may have besides the headers of the fixture, because they belong to the connection. */
const CONNECTION = ['Connection', 'Content-Length', 'Date', 'Keep-Alive', 'Transfer-Encoding']
/** The only headers that V3 may receive. Headers of a part and of the client's own connection are not forwarded (batch-wire F24). */
const FORWARDED = ['accept', 'authorization', 'connection', 'content-length', 'content-type', 'host', 'odata-maxversion', 'ocp-apim-subscription-key', 'prefer'] // prettier-ignore

/** Expects the reply to equal the template byte for byte: names, order and case of headers, line ends and lengths. */
export function expectReply(actual: RawMessage, expected: RawMessage): void {
  expectTemplate(textOf(actual), textOf(expected))
}

/** Writes the reply to the file `response.http` of the fixture, as its new template. */
export async function rewriteReply(
  { folder, request, response }: Fixture,
  actual: RawMessage,
): Promise<void> {
  const older = response === undefined ? '' : textOf(response)
  const text = toTemplate(textOf(actual), older, `${older} ${request.body.toString('latin1')}`)
  await writeFile(new URL('response.http', folder), text)
}

function textOf({ startLine, headers, body }: RawMessage): string {
  const own = headers.filter(([name]) => !CONNECTION.includes(name))
  const lines = [startLine, ...own.map(([name, value]) => `${name}: ${value}`)]
  return `${lines.join('\r\n')}\r\n\r\n${body.toString('utf8')}`
}

/** Expects a rejection of the whole request (batch-wire 5). */
export function expectRefusal(actual: RawMessage, expected: NonNullable<Fixture['reject']>): void {
  const { error } = JSON.parse(actual.body.toString('utf8')) as {
    error: { code: string; message: string; details: { code: string; message: string; target: string }[] }
  }
  expect({
    status: Number(actual.startLine.split(' ')[1]),
    type: headerOf(actual, 'content-type'),
    code: error.code,
    ...(expected.target === undefined ? {} : { target: error.details[0]?.target }),
  }).toEqual({ type: 'application/json; charset=utf-8', ...expected })
  expect(error.message).not.toBe('')
  for (const detail of error.details)
    expect(detail).toMatchObject({ code: error.code, message: error.message })
}

/** Expects that V3 received exactly the scripted posts with the outer request's credentials, in order for each learner and event. */
export function expectPosts({ posts, request }: Fixture, upstream: ScriptedUpstream): void {
  expect(upstream.posts.filter(({ index }) => index === -1)).toEqual([])
  expect(upstream.posts.map(({ index }) => index).toSorted((one, other) => one - other)).toEqual([
    ...posts.keys(),
  ])
  const last = new Map<string, number>()
  for (const { index, headers, path, body } of upstream.posts) {
    expect(path.split('?', 1)).toEqual(['/Attendance/V3/AttendanceRecords'])
    expect(Object.keys(headers).filter((name) => !FORWARDED.includes(name))).toEqual([])
    expect([
      headers.authorization,
      headers['ocp-apim-subscription-key'],
      `http://${headers.host ?? ''}`,
    ]).toEqual([
      headerOf(request, 'authorization'),
      headerOf(request, 'ocp-apim-subscription-key'),
      upstream.url,
    ])
    const { Attendee, Event } = body as Partial<Record<'Attendee' | 'Event', { ExternalID: string }>>
    const key = `${Attendee?.ExternalID} ${Event?.ExternalID}`.toLowerCase()
    expect(index).toBeGreaterThan(last.get(key) ?? -1)
    last.set(key, index)
  }
}
