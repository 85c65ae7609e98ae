import fc from 'fast-check'

import type { FlatRecord } from '../../../src/v2/record/decode-record.ts'
import type { BatchModel, ChangesetModel, PartModel } from './batch-model.ts'

const guid = fc.uuid().chain((id) => fc.constantFrom(id, id.toUpperCase()))

/** Comments that look like framing, and any other text. */
const comment = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom(
    '--b',
    '\r\n--b--\r\n',
    '\n--c\nContent-Type: application/http\n\nPOST x HTTP/1.1\n',
    "it's",
    '',
  ),
)

export const arbitraryRecord: fc.Arbitrary<FlatRecord> = fc.record({
  Present: fc.boolean(),
  Absent: fc.boolean(),
  Learner: guid,
  AttendableEvent: guid,
  SchoolAttendanceCode: guid,
  MinutesLate: fc.option(fc.option(fc.integer(), { nil: null }), { nil: undefined }),
  Comment: fc.option(fc.option(comment, { nil: null }), { nil: undefined }),
  unmapped: fc.constant(undefined),
})

const blankLines = fc.record({
  beforeRequest: fc.nat({ max: 2 }),
  beforeJson: fc.nat({ max: 2 }),
  afterJson: fc.nat({ max: 2 }),
})

export const arbitraryPart: fc.Arbitrary<PartModel> = fc
  .record({
    contentId: fc.constantFrom('1', '2', '10', '0.0', '<é@b>', 'a b', '5f1e7a9d-2c41-4b6f-8cc9-04d64a8b9c3e'),
    idPlace: fc.constantFrom('none', 'mime', 'mime', 'http', 'both'),
    partType: fc.constantFrom('application/http', 'application/http; msgtype=request', 'APPLICATION/HTTP'),
    declaresBinary: fc.boolean(),
    target: fc.constantFrom(
      'AttendanceRecords',
      '/x/AttendanceRecords',
      'https://a.example/x/AttendanceRecords',
    ),
    prefersMinimal: fc.boolean(),
    headers: fc.subarray([
      ['Content-Type', 'application/json;odata.metadata=minimal'],
      ['Accept-Charset', 'UTF-8'],
      ['Content-Length', '3'],
      ['Authorization', 'bearer other'],
    ] as const),
    reversed: fc.boolean(),
    style: fc.record({
      name: fc.constantFrom('canonical', 'lower', 'upper'),
      separator: fc.constantFrom(': ', ':', ':\t', ':  ', ':\n '),
    }),
    blankLines,
    record: arbitraryRecord,
    pretty: fc.boolean(),
  })
  .map(({ pretty, ...part }) => ({ ...part, json: JSON.stringify(part.record, null, pretty ? 2 : 0) }))

/** Parts as clients write them: mostly alike, so that the decoder reuses the previous head. */
const parts = fc
  .tuple(arbitraryPart, fc.array(fc.tuple(arbitraryPart, fc.boolean()), { maxLength: 4 }))
  .map(([first, others]): PartModel[] => [
    first,
    ...others.map(([own, alike]) =>
      alike ? { ...first, contentId: own.contentId, record: own.record, json: own.json } : own,
    ),
  ])

// Some boundaries are prefixes of others. No boundary is another one followed by two dashes, which would be its closing delimiter.
const boundaries = fc.shuffledSubarray(
  ['b', 'bb', 'b-b', 'B', "b'()+_,-./:=?b", 'batch_1', 'batch_12', 'c'.repeat(70), 'c c'],
  {
    minLength: 6,
  },
)
const prose = fc.constantFrom('', '\n', 'Prose.\n', '\n\n -- \nb--b\n', '--note\n', '--bbb\n--\n')

const shapes = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('parts' as const), parts }),
    fc.record({
      kind: fc.constant('changeset' as const),
      parts: fc.oneof(parts, fc.constant([])),
      preamble: prose,
      epilogue: prose,
    }),
  ),
  { maxLength: 4 },
)

/** Any batch that docs/protocol.md accepts, in any form that it names. */
export const arbitraryBatch: fc.Arbitrary<BatchModel> = fc
  .record({
    names: boundaries,
    shapes,
    quoted: fc.boolean(),
    bom: fc.boolean(),
    preamble: prose,
    epilogue: prose.map((text) => `\n${text}`).chain((text) => fc.constantFrom('', text)),
    padding: fc.constantFrom('', '', ' ', ' \t '),
    lineEnds: fc.oneof(
      fc.constant([true]),
      fc.constant([false]),
      fc.array(fc.boolean(), { minLength: 2, maxLength: 9 }),
    ),
  })
  .map(({ names, shapes: written, ...rest }) => {
    const [boundary = 'b', ...others] = names
    const items = written.flatMap((shape, index): (PartModel | ChangesetModel)[] =>
      shape.kind === 'parts'
        ? shape.parts
        : [
            {
              boundary: others[index] ?? 'never',
              preamble: shape.preamble,
              epilogue: shape.epilogue === '' ? '' : `\n${shape.epilogue}`,
              parts: shape.parts,
            },
          ],
    )
    return { ...rest, boundary, items }
  })
