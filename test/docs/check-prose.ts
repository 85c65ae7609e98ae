import { globSync, readFileSync } from 'node:fs'

import ts from 'typescript'

/**
 * `npm run lint`: finds phrases that readers stumble over, in the comments of the code and in the documents, and sentences of documents
 * that are too long. Prints one line for each finding, and exits with status 1 if there are any.
 */
const phrases: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [/(?:^|[.;(] )(?:[Uu]ndefined|None|True|False): /, 'say in a clause what the value means: "or `undefined` if …"'],
  [/(?<!there )\b(?:is|are) none\b(?! of)/, 'say "there is no …" or "has no …"'],
  [/\bwhoever\b/i, 'name the actor'],
  [/(?:^|[.;] )What (?:is|was|are|were|has|have|had)\b/, 'name the thing in place of a clause with "what"'],
] // prettier-ignore
const MAX_WORDS = 40

const findings: string[] = []

function findPhrases(place: string, text: string): void {
  for (const [pattern, advice] of phrases) {
    const found = pattern.exec(text)
    // A question may begin with "What is".
    if (found !== null && !text.slice(found.index).split(/[.;]/)[0]?.includes('?'))
      findings.push(`${place}: "${found[0].trim()}": ${advice}`)
  }
}

/** Checks each comment of a source file as one line of text. */
function checkComments(path: string): void {
  const text = readFileSync(path, 'utf8')
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const comments = new Map<number, number>()
  const visit = (node: ts.Node): void => {
    const ranges = [ts.getLeadingCommentRanges(text, node.pos), ts.getTrailingCommentRanges(text, node.end)]
    for (const { pos, end } of ranges.flatMap((found) => found ?? [])) comments.set(pos, end)
    ts.forEachChild(node, visit)
  }
  visit(file)
  for (const [from, to] of comments) {
    const words = text.slice(from, to).replaceAll(/^\s*(?:\/\*\*?|\*\/|\*|\/\/)|\*\/$/gm, '')
    const line = file.getLineAndCharacterOfPosition(from).line + 1
    findPhrases(`${path}:${line}`, words.replaceAll(/\s+/g, ' ').trim())
  }
}

/** Checks the paragraphs, items and table cells of a document, without its code. */
function checkDocument(path: string): void {
  const text = readFileSync(path, 'utf8').replaceAll(/^ *```[^]*?^ *```/gm, (code) =>
    code.replaceAll(/[^\n]/g, ''),
  )
  let line = 1
  for (const block of text.split(/(\n\s*\n|\n(?=\s*[-|#]|\s*\d+\. ))/)) {
    const place = `${path}:${line + (/^\n*/.exec(block)?.[0].length ?? 0)}`
    line += block.split('\n').length - 1
    for (const cell of block.trimStart().startsWith('|') ? block.split('|') : [block]) {
      const words = cell.replaceAll(/`[^`]*`/g, 'code').replaceAll(/\]\([^)]*\)/g, ']').replaceAll(/\s+/g, ' ').trim() // prettier-ignore
      findPhrases(place, words)
      for (const sentence of words.split(/[.!?:;](?=\s|$)/)) {
        const count = sentence.trim().split(' ').length
        if (count > MAX_WORDS) findings.push(`${place}: a sentence of ${count} words: split it`)
      }
    }
  }
}

for (const path of globSync(['src/**/*.{ts,tsx}', 'test/**/*.{ts,tsx}', 'bench/*.ts'], {
  exclude: ['**/node_modules/**'],
}))
  checkComments(path)
for (const path of globSync(['*.md', 'docs/**/*.md', 'bench/README.md'])) checkDocument(path)
if (findings.length > 0) console.log(findings.join('\n'))
process.exitCode = findings.length === 0 ? 0 : 1
