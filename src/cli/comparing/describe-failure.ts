import { DAY_MS, formatDay, type RunResult, type WindowFailure } from '../../compare/run/index.ts'
import type { AdapterError } from '../../errors.ts'

/** Why a run is not complete, and how to go on, on one line. */
export function describeFailure({ end, failures, document }: RunResult): string {
  const resume = `Go on with the same options and --resume ${document.run}.`
  if (end.kind === 'refused') return `${describe(end.failure)} ${resume}`
  if (end.kind === 'stopped') return `The run was stopped. ${resume}`
  const [first] = failures
  const more = failures.length > 1 ? ` ${failures.length - 1} more windows could not be compared.` : ''
  const why = first === undefined ? '' : `${describe(first)}${more} `
  return `${end.kind === 'failing' ? 'The run ended early: window after window failed. ' : ''}${why}${resume}`
}

function describe({ window, side, cause }: WindowFailure): string {
  const { fromMs, toMs } = window
  const days = toMs > fromMs ? ` (${formatDay(fromMs)} to ${formatDay(Math.max(fromMs, toMs - DAY_MS))})` : ''
  return describeCause(side, cause, days)
}

/** Why a side could not be read. The text of a service is not shown: it may name what was asked for. */
export function describeCause(side: 'V2' | 'V3', cause: AdapterError, days = ''): string {
  const variable = `MARKBRIDGE_${side === 'V3' ? 'V3_' : ''}`
  switch (cause.code) {
    case 'ADP_TOKEN':
    case 'ADP_SUBSCRIPTION_KEY':
      return `${side} denies the credentials (401). Check ${variable}SUBSCRIPTION_KEY and ${variable}TOKEN, or the partner's own.`
    case 'ADP_FORBIDDEN':
      return `${side} does not let these credentials read this (403). The school may have withdrawn its consent, or the application lacks the permission.`
    case 'ADP_NOT_FOUND':
      return `${side} has no such path (404). Check the base address of ${side}.`
    case 'ADP_UPSTREAM_REFUSED':
      return `${side} refuses the query${days}: ${cause.details.map(({ code }) => codeOf(code)).join(', ')}.`
    case 'ADP_UPSTREAM_PROTOCOL':
    case 'ADP_QUERY':
      return `${side}${days}: ${cause.message}`
    default:
      return `${side} was not available${days}.`
  }
}

/** A code of an error as services write it; anything else may be a value. */
function codeOf(code: string): string {
  return /^[A-Z][A-Za-z_]{0,40}\d{0,3}$/.test(code) ? code : 'without a known code'
}
