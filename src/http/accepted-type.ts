/**
 * The media type of `offers` that a client prefers, by the weights of its `Accept` (RFC 9110 12.5.1); the first of equal ones.
 * Undefined if it accepts none of them.
 */
export function acceptedType<Type extends string>(
  accept: string | undefined,
  offers: readonly [Type, ...Type[]],
): Type | undefined {
  if (accept === undefined || accept.trim() === '') return offers[0]
  const ranges = accept.split(',').map((text) => {
    const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
    const weight = parameters
      .map((one) => /^q=([01](?:\.\d{0,3})?)$/.exec(one)?.[1])
      .find((q) => q !== undefined)
    return { type, weight: Number(weight ?? 1) }
  })
  const weightOf = (offer: Type): number => {
    const [main = ''] = offer.split('/')
    for (const wanted of [offer, `${main}/*`, '*/*']) {
      const found = ranges.find(({ type }) => type === wanted)
      if (found !== undefined) return found.weight
    }
    return 0
  }
  const [best] = [...offers].sort((one, other) => weightOf(other) - weightOf(one))
  return best !== undefined && weightOf(best) > 0 ? best : undefined
}
