import { formatCounted, formatCount } from '../../compare/report/format.ts'
import { sees } from '../../rollout/operators.ts'
import { MAX_FILE_BYTES, usageError, type Visit } from '../access/visit.ts'
import type { ConsolePorts, TriedBatch, TriedFinding, TriedRecord, TriedReply } from '../ports.ts'
import type { Page } from './page.ts'
import { Badge, Form, Id, Notice, Section, table } from './parts.tsx'

/** Shows how the adapter would decode, translate and answer a recorded batch. Posts and stores nothing. */
export const tryIt: Page = {
  path: '/try',
  show: async (visit, ports) => {
    const partners = await visiblePartners(visit, ports)
    return {
      title: 'Try it',
      json: { partners, maxBytes: MAX_FILE_BYTES },
      body: choice(partners),
    }
  },
  act: async (visit, ports) => {
    const { form, file } = visit
    const partners = await visiblePartners(visit, ports)
    const partner = partners.find((one) => one === form.get('partner'))
    if (partner === undefined)
      throw usageError('No partner was chosen. Nothing was tried. Choose the partner that sends the batch.')
    // A browser sends the lines of a text with CRLF, so a pasted batch needs no conversion.
    const given = file ?? Buffer.from(form.get('text') ?? '')
    if (given.length === 0)
      throw usageError(
        'No batch was given. Nothing was tried. Paste or choose the body of a batch or a whole request.',
      )
    const tried = await ports.tryBatch(partner, given)
    return {
      title: 'Try it',
      status: `${tried.isSound ? formatCounted(tried.records.length, 'record') : 'Refused'} · Try it`,
      json: { partner, ...tried },
      body: (
        <>
          <Tried tried={tried} file={given} />
          {choice(partners, partner)}
        </>
      ),
    }
  },
}

async function visiblePartners({ actor }: Visit, { stages }: ConsolePorts): Promise<readonly string[]> {
  const all = await stages.list()
  return all.map(({ document }) => document.partner).filter((partner) => sees(actor, partner))
}

function choice(partners: readonly string[], chosen = '') {
  const options = partners.map((partner) => [partner, partner] as const)
  const label = `Recorded batch, at most ${MAX_FILE_BYTES / 1_048_576} MiB`
  const fields = [
    { name: 'partner', label: 'Partner that sends it', value: chosen, options },
    { name: 'batch', label, type: 'file' },
    { name: 'text', label: 'Or paste the batch', type: 'textarea' },
  ]
  return (
    <Form id="try" label="Try it" fields={fields}>
      <p>
        Choose a recorded batch: its body as <code>send</code> takes it, or a whole HTTP request. It is
        decoded and translated as in the adapter. Nothing is posted or stored.
      </p>
    </Form>
  )
}

const SHOWN = 500
/** The maximum length of a text on the page, since a page of several megabytes would take long to write. */
const SHOWN_CHARACTERS = 4_096

function shortened(text: string): string {
  const more = text.length - SHOWN_CHARACTERS
  return more <= 0
    ? text
    : `${text.slice(0, SHOWN_CHARACTERS)}… (${formatCount(more)} more characters; the JSON of this page contains the whole text)`
}

function Tried({ tried, file }: { readonly tried: TriedBatch; readonly file: Buffer }) {
  const { records, findings, isSound, isBody, bytes, reply } = tried
  const refused = records.filter(({ v3 }) => v3 === undefined).length
  const what = isSound
    ? `${formatCounted(records.length, 'record')} in ${formatCount(bytes)} bytes: ${formatCount(records.length - refused)} would be posted to V3, ${formatCount(refused)} refused by the adapter.`
    : 'The adapter would refuse the whole request and post no record.'
  return (
    <>
      <Notice tone={isSound ? (refused === 0 ? 'good' : 'note') : 'bad'} role="status" what={what} />
      <Section title="Findings">{findingTable(findings.slice(0, SHOWN), isBody ? file : undefined)}</Section>
      <Section title="Records">
        {recordTable(records.slice(0, SHOWN))}
        {records.length > SHOWN && (
          <p class="soft">The page shows the first {SHOWN} records. The JSON of the page has all records.</p>
        )}
      </Section>
      {reply && <Reply reply={reply} />}
    </>
  )
}

const severityTones = { error: 'bad', warning: 'note', note: 'plain' } as const

/** Shows the findings in a table. `file` is `undefined` if the offsets do not refer to the file. */
const findingTable = (findings: readonly TriedFinding[], file: Buffer | undefined) =>
  table<TriedFinding>('Findings', 'The batch has no findings.', [
    ['Finding', ({ message, code }) => [message, ' ', <code>{code}</code>]],
    ['Severity', ({ severity }) => <Badge tone={severityTones[severity]}>{severity}</Badge>],
    ['What to do', ({ remedy }) => remedy],
    ['Part', ({ part }) => part],
    ['Byte', ({ offset }) => offset],
    ['Text', ({ offset }) => file && offset !== undefined && <Excerpt file={file} offset={offset} />],
  ])(findings)

const AROUND = 80

function Excerpt({ file, offset }: { readonly file: Buffer; readonly offset: number }) {
  const textOf = (from: number, to: number): string => file.subarray(Math.max(0, from), to).toString('utf8')
  return (
    <pre>
      {textOf(offset - AROUND, offset)}
      <mark>{textOf(offset, offset + 1) || '(end)'}</mark>
      {textOf(offset + 1, offset + AROUND)}
    </pre>
  )
}

const recordTable = table<TriedRecord>('Records', 'The batch has no records.', [
  ['Part', ({ part }) => String(part)],
  ['Content-ID', ({ contentId }) => <Id of={contentId} />],
  ['V2 record', ({ v2 }) => (v2 ? <code class="json">{shortened(v2)}</code> : 'cannot be read')],
  [
    'Body for V3',
    ({ v3 }) =>
      v3 ? <code class="json">{shortened(v3)}</code> : 'none, because the adapter refuses the record',
  ],
])

const replyNotes = `V3 decides whether a part is 201 or a refusal. If V3 does not respond, the part is 504 or 503.
  The marked text stands for the id that V3 assigns. Other values come from V3's response if it has them; the posted values are shown here.
  The code and message of a refusal depend on V3's error; ATT_VAL_3 is an example.
  Boundaries and SequenceID are new in each reply, and @odata.context has the address of the client's request.`

function Reply({ reply: { head, parts, end, v3Id } }: { readonly reply: TriedReply }) {
  return (
    <Section title="Reply">
      <pre>{head.trimEnd()}</pre>
      {parts.length > 0 && <p class="soft">{replyNotes}</p>}
      {parts.slice(0, SHOWN).map(({ ifAccepted, otherwise }, at) => (
        <details open={at === 0}>
          <summary>
            Part {at + 1}: {ifAccepted && `${statusIn(ifAccepted)} if V3 accepts it, otherwise `}
            {statusIn(otherwise)}
          </summary>
          {ifAccepted && <pre>{marked(ifAccepted, v3Id)}</pre>}
          <pre>{shortened(otherwise.trimEnd())}</pre>
        </details>
      ))}
      <pre>{end.trimEnd()}</pre>
    </Section>
  )
}

const statusIn = (part: string): string => /^HTTP\/1\.1 (\d+)/m.exec(part)?.[1] ?? ''

const marked = (part: string, id: string) =>
  shortened(part.trimEnd())
    .split(id)
    .flatMap((text, at) => (at === 0 ? [text] : [<mark>{id}</mark>, text]))
