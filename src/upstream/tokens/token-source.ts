import type { IssuedToken } from './fetch-token.ts'

/** The tokens of one partner. */
export interface TokenSource {
  /** A token that is good now. Rejects with the error of the endpoint when there is none. */
  token(): Promise<string>
  /** A token other than `refused`, which the service did not take. */
  renew(refused: string): Promise<string>
}

export interface TokenSourceOptions {
  /** Asks for a new token. */
  readonly fetch: () => Promise<IssuedToken>
  /** Milliseconds that never go back. */
  readonly nowMs: () => number
}

/** From this share of its lifetime on a token is replaced, while it is still used. */
const REFRESH_AT = 0.8
/** A token that is used must still be good when it arrives. */
const LEAST_LEFT_MS = 5_000
/** Pause after a failed early refresh. */
const PAUSE_MS = 5_000

/**
 * Creates a cache of one token: fetched when first needed, replaced in the background at 80 % of its lifetime, one request at a
 * time however many ask. While the endpoint fails, the old token serves to its end.
 */
export function createTokenSource({ fetch, nowMs }: TokenSourceOptions): TokenSource {
  let cached: { readonly token: string; readonly refreshMs: number; readonly endMs: number } | undefined
  let running: Promise<string> | undefined
  let pausedUntilMs = -Infinity
  const load = async (): Promise<string> => {
    const askedMs = nowMs()
    try {
      const { token, lifetimeMs } = await fetch()
      const endMs = askedMs + Math.max(lifetimeMs - LEAST_LEFT_MS, lifetimeMs / 2)
      cached = { token, refreshMs: askedMs + lifetimeMs * REFRESH_AT, endMs }
      return token
    } catch (error) {
      pausedUntilMs = nowMs() + PAUSE_MS
      throw error
    } finally {
      running = undefined
    }
  }
  const once = (): Promise<string> => (running ??= load())
  return {
    token: () => {
      const now = nowMs()
      if (cached === undefined || cached.endMs <= now) return once()
      // The token in use is still valid; the next call sees the result of the early refresh.
      if (cached.refreshMs <= now && pausedUntilMs <= now) once().catch(() => undefined)
      return Promise.resolve(cached.token)
    },
    renew: (refused) =>
      cached !== undefined && cached.token !== refused && cached.endMs > nowMs()
        ? Promise.resolve(cached.token)
        : once(),
  }
}
