import { parsePattern, type CharacterSet, type PatternNode } from './pattern-syntax.ts'
import { QueryError } from '../query-error.ts'

type Instruction =
  | { readonly op: 'set'; readonly set: CharacterSet }
  | { readonly op: 'start' | 'end' | 'match' }
  /** Go on at both places. */
  | { readonly op: 'fork'; readonly to: readonly number[] }

const maxInstructions = 1000

const contains = ({ ranges, negated }: CharacterSet, code: number): boolean =>
  ranges.some(([low, high]) => code >= low && code <= high) !== negated

/** Translates a pattern tree into instructions (Thompson's construction). */
class Program {
  readonly instructions: Instruction[] = []
  readonly #origin: number

  constructor(node: PatternNode, origin: number) {
    this.#origin = origin
    this.#emit(node)
    this.#push({ op: 'match' })
  }

  #push(instruction: Instruction): number {
    // Counted repetitions multiply, so size is bounded here and not by the length of the text.
    if (this.instructions.length >= maxInstructions) {
      throw new QueryError('The pattern is too large', this.#origin)
    }
    return this.instructions.push(instruction) - 1
  }

  #patch(at: number, to: readonly number[]): void {
    this.instructions[at] = { op: 'fork', to }
  }

  #emit(node: PatternNode): void {
    switch (node.kind) {
      case 'set':
        this.#push({ op: 'set', set: node.set })
        break
      case 'start':
      case 'end':
        this.#push({ op: node.kind })
        break
      case 'sequence':
        for (const item of node.items) this.#emit(item)
        break
      case 'choice':
        this.#choice(node.items)
        break
      case 'repeat':
        this.#repeat(node.item, node.min, node.max)
    }
  }

  #choice(items: readonly PatternNode[]): void {
    const fork = this.#push({ op: 'fork', to: [] })
    const starts: number[] = []
    const jumps: number[] = []
    for (const item of items) {
      starts.push(this.instructions.length)
      this.#emit(item)
      jumps.push(this.#push({ op: 'fork', to: [] }))
    }
    this.#patch(fork, starts)
    for (const jump of jumps) this.#patch(jump, [this.instructions.length])
  }

  #repeat(item: PatternNode, min: number, max: number): void {
    for (let count = 0; count < min; count++) this.#emit(item)
    if (max === Infinity) {
      const fork = this.#push({ op: 'fork', to: [] })
      this.#emit(item)
      this.#push({ op: 'fork', to: [fork] })
      this.#patch(fork, [fork + 1, this.instructions.length])
      return
    }
    const forks: number[] = []
    for (let count = min; count < max; count++) {
      forks.push(this.#push({ op: 'fork', to: [] }))
      this.#emit(item)
    }
    for (const fork of forks) this.#patch(fork, [fork + 1, this.instructions.length])
  }
}

/** A run through a program: which instructions wait for the next character, and whether the end was reached. */
class Run {
  readonly #instructions: readonly Instruction[]
  readonly #text: string
  readonly #reachedAt: Int32Array

  constructor(instructions: readonly Instruction[], text: string) {
    this.#instructions = instructions
    this.#text = text
    this.#reachedAt = new Int32Array(instructions.length).fill(-1)
  }

  /** All ways at once, one pass over the text: time is text length times program size. */
  matches(): boolean {
    const text = this.#text
    let waiting: number[] = []
    for (let at = 0; at < text.length; at++) {
      // A match may begin anywhere.
      if (this.#follow(0, at, waiting)) return true
      const code = text.charCodeAt(at)
      const next: number[] = []
      for (const place of waiting) {
        const instruction = this.#instructions[place]
        if (instruction?.op !== 'set' || !contains(instruction.set, code)) continue
        if (this.#follow(place + 1, at + 1, next)) return true
      }
      waiting = next
    }
    return this.#follow(0, text.length, waiting)
  }

  /** Adds to `waiting` what can be reached from `start` without a character; true where that is the match. */
  #follow(start: number, at: number, waiting: number[]): boolean {
    const open = [start]
    for (let place = open.pop(); place !== undefined; place = open.pop()) {
      const instruction = this.#instructions[place]
      if (instruction === undefined || this.#reachedAt[place] === at) continue
      this.#reachedAt[place] = at
      if (instruction.op === 'match') return true
      if (instruction.op === 'set') waiting.push(place)
      else if (instruction.op === 'fork') open.push(...instruction.to)
      else if (instruction.op === 'start' ? at === 0 : at === this.#text.length) open.push(place + 1)
    }
    return false
  }
}

/**
 * Compiles the pattern of `matchesPattern` into a test that takes linear time whatever the pattern: a backtracking
 * engine would let one query stop the service.
 *
 * @param origin - position of the pattern in the query, for the error
 * @throws QueryError for syntax that is wrong or not supported, and for a pattern that is too large
 */
export function compilePattern(pattern: string, origin: number): (text: string) => boolean {
  const { instructions } = new Program(parsePattern(pattern, origin), origin)
  return (text) => new Run(instructions, text).matches()
}
