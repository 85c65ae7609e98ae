import type { Random } from '../../../src/sandbox/random.ts'

const nested = (open: string, close: string, depth: number): string =>
  open.repeat(depth) + '1' + close.repeat(depth)

/** JSON that is known to trouble parsers and code that walks through its values. */
const values: readonly [(random: Random) => string, ...((random: Random) => string)[]] = [
  (random) => nested('[', ']', random.pick([200, 5_000, 100_000])),
  (random) => nested('{"a":', '}', random.pick([200, 5_000, 20_000])),
  () => `[${'0,'.repeat(20_000)}0]`,
  () => `[${'{},'.repeat(9_000)}{}]`,
  () => `{${Array.from({ length: 5_000 }, (_, n) => `"m${n}":${n}`).join()}}`,
  (random) => `"${'x'.repeat(random.pick([10_000, 200_000]))}"`,
  () => `"${'\\u0000'.repeat(2_000)}"`,
  () => '"\\ud800"',
  () => '1e400',
  () => '-0',
  () => '9007199254740993',
  () => '{"__proto__":{"ExternalID":"x"},"constructor":1,"toString":null}',
  () => 'null',
  () => 'true',
  () => '[]',
  () => '{}',
  () => '""',
]

export const oddValue = (random: Random): string => random.pick(values)(random)

/** Replaces the value of a drawn member by an unexpected value or by null, or removes the member. */
function oddMember(text: string, random: Random): string {
  const members = Object.entries(JSON.parse(text) as Record<string, unknown>)
  const at = random.below(Math.max(1, members.length))
  const how = random.pick(['odd', 'null', 'missing'])
  const written = members.flatMap(([name, value], index) => {
    if (index !== at) return [`${JSON.stringify(name)}:${JSON.stringify(value)}`]
    if (how === 'missing') return []
    return [`${JSON.stringify(name)}:${how === 'null' ? 'null' : oddValue(random)}`]
  })
  return `{${written.join()}}`
}

const withMember = (text: string, member: string): string => `{${member},${text.slice(1)}`

/** Functions that write the JSON of an object with the same meaning, with an additional member, or so that it cannot be read. */
const spellings: readonly [
  (text: string, random: Random) => string,
  ...((text: string, random: Random) => string)[],
] = [
  (text) => text,
  (text) => `\ufeff${text}`,
  (text) => ` \r\n${text}\n\n`,
  (text) => `${text}${' '.repeat(70_000)}`,
  (text, random) => withMember(text, `"odd":${oddValue(random)}`),
  (text, random) => text.slice(0, random.below(text.length)),
  (text) => text.replaceAll('"', "'"),
  (text) => `${text}${text}`,
  (text) => `\0${text}`,
  (text) => `[${text}]`,
  () => '',
  () => '<html><body>Bad Gateway</body></html>',
  (_text, random) => oddValue(random),
]

/** Spells the JSON of an object in a drawn way. With `keepsMembers` no member is changed, because a missing member would have a meaning. */
export function oddJson(text: string, random: Random, keepsMembers = false): string {
  if (random.chance(0.4)) return text
  if (!keepsMembers && random.chance(0.4)) return oddMember(text, random)
  const spelt = random.pick(spellings)(text, random)
  // An empty value would mean that the service has no mark, which only a service without the mark may say.
  return keepsMembers && /^\s*(?:\[\]|\{\}|null|""|)\s*$/.test(spelt) ? '<html>' : spelt
}

/** Builds the JSON of an error in one of the forms of services and gateways. */
export function oddError(random: Random): string {
  const code = random.pick(['ATT_VAL_2', 'ATT_VAL_3', '', 'X', 'x'.repeat(4_000)])
  const message = random.pick([
    'No.',
    '',
    'The event does not exist.',
    'Try again in 1 seconds.',
    'y'.repeat(70_000),
  ])
  const forms = [
    { error: { code, message, target: 'Event' } },
    { error: { code, message, details: Array.from({ length: random.pick([0, 1, 3, 900]) }, () => ({ code, message: 'No.' })) } },
    { error: { code: null, message: null, details: null } },
    { error: { code: 5, message: [], details: [null, 1, {}] } },
    { error: null },
    { statusCode: 429, message },
    { statusCode: '429', message: {} },
    { Message: message, ErrorCode: code },
  ] as const // prettier-ignore
  return oddJson(JSON.stringify(random.pick<object>(forms)), random)
}
