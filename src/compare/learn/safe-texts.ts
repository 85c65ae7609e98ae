import { knownMembers, knownWords } from '../recording/vocabulary.ts'

const MAX_MESSAGE = 200
/** What stands for a text that may hold something of a record. */
export const WITHHELD = '(withheld)'

const plainText = /^[A-Za-z][A-Za-z ,.'-]*$/
/** The words of the types that service.md and its vendor name (service-facts 5). */
const typeWords: ReadonlySet<string> = new Set(
  'Learner Identifier Attendance Session Statutory Attendable Event Lookup Code School Pupil Student'.split(
    ' ',
  ),
)

/**
 * The message of an error if it is a text of the service alone: words of its vocabulary, no digits, no quoted values. In a sentence only
 * the names of members are written with a capital, since any other such word may be a name.
 */
export function safeMessage(message: string): string {
  if (message.length > MAX_MESSAGE || !plainText.test(message)) return WITHHELD
  const isPlain = message.split(/[.]\s*/).every((sentence) =>
    sentence
      .split(/[ ,'-]+/)
      .filter((word) => word !== '')
      .every((word, at) => isServiceWord(word, at === 0)),
  )
  return isPlain ? message : WITHHELD
}

function isServiceWord(word: string, isFirst: boolean): boolean {
  if (knownMembers.has(word)) return true
  const isLower = word === word.toLowerCase() || (isFirst && word.slice(1) === word.slice(1).toLowerCase())
  return isLower && knownWords.has(word.toLowerCase())
}

/** The code of an error if it has the form of one. */
export function safeCode(code: string): string {
  return /^[A-Z]{2,12}(?:_[A-Z]{1,12}){0,3}(?:_\d{1,3})?$/.test(code) ? code : WITHHELD
}

/** True for a Type string that is made of the words of the service's types. */
export function isTypeName(text: string): boolean {
  if (text.length > 100 || !/^[A-Z][A-Za-z]*(?:\.[A-Z][A-Za-z]*)+$/.test(text)) return false
  return (text.match(/[A-Z][a-z]*/g) ?? []).every((word) => typeWords.has(word))
}
