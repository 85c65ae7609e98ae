import type { SearchExpr } from '../ast.ts'

const plainWord = /^(?!(?:AND|OR|NOT)$)[^\s'()";][^\s()";]*$/

const inParentheses = (node: SearchExpr): string =>
  node.kind === 'and' || node.kind === 'or' ? `(${printSearch(node)})` : printSearch(node)

/** Writes a `$search` expression as decoded text; words that are no plain words become phrases. */
export function printSearch(node: SearchExpr): string {
  switch (node.kind) {
    case 'term':
      return plainWord.test(node.text) ? node.text : `"${node.text}"`
    case 'incomplete':
      return `'${node.text.replaceAll("'", "''")}'`
    case 'not':
      return `NOT ${inParentheses(node.operand)}`
    case 'and':
      return node.operands.map(inParentheses).join(' AND ')
    case 'or':
      return node.operands
        .map((operand) => (operand.kind === 'or' ? inParentheses(operand) : printSearch(operand)))
        .join(' OR ')
  }
}
