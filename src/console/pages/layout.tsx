import { STATUS_CODES } from 'node:http'

import type { ComponentChildren } from 'preact'
import { renderToString } from 'preact-render-to-string'

import type { SignedIn } from '../access/sessions.ts'
import { assetPath } from '../assets/assets.ts'
import type { Done, Shown } from './page.ts'
import { Notice } from './parts.tsx'

interface Place {
  /** The signed-in person, or `undefined` on a page without a login, which has no navigation. */
  readonly signedIn?: SignedIn | undefined
  readonly path?: string
  readonly hasSandbox?: boolean
  readonly result?: Pick<Done, 'isDone' | 'text'> | undefined
}

const places = [
  ['/', 'Overview'],
  ['/partners', 'Partners'],
  ['/batches', 'Batches'],
  ['/letters', 'Dead letters'],
  ['/comparison', 'Comparison'],
  ['/try', 'Try it'],
  ['/sandbox', 'Sandbox'],
  ['/audit', 'Audit trail'],
] as const

export const renderPage = ({ title, status, body }: Shown, place: Place): string =>
  render(title, body, place, status)

export function renderError(status: number, message: string, place: Place): string {
  const body = <Notice tone="bad" what={message} link={['/', 'Back to the overview']} />
  return render(STATUS_CODES[status] ?? 'Error', body, place)
}

/** Renders the login page. `to` is the path to open after the login. */
export function renderLogin(to: string, error?: string): string {
  const body = (
    <>
      <form method="post" action={`/login?to=${encodeURIComponent(to)}`} class="act">
        <p class="field">
          <label for="token">Token of the operator</label>
          <input id="token" name="token" type="password" required autocomplete="current-password" />
        </p>
        <button>Sign in</button>
      </form>
      <p class="soft">
        The configuration lists the operators in <code>rollout.operators</code>. If it lists none, the console
        prints a link when it starts, which works once.
      </p>
    </>
  )
  return render('Sign in', body, { result: error === undefined ? error : { isDone: false, text: error } })
}

function Header({
  signedIn: { actor },
  path = '',
  hasSandbox = false,
}: Place & { readonly signedIn: SignedIn }) {
  const shown = places.filter(([href]) => href !== '/sandbox' || (hasSandbox && actor.partners === undefined))
  const isWithin = (href: string): boolean => path === href || (href !== '/' && path.startsWith(`${href}/`))
  return (
    <header>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <a class="brand" href="/">
        Markbridge
      </a>
      <nav aria-label="Pages">
        <ul>
          {shown.map(([href, name]) => (
            <li>
              <a href={href} aria-current={isWithin(href) ? 'page' : undefined}>
                {name}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <form method="post" action="/logout" class="who">
        <span>
          {actor.name} · {actor.role}
        </span>
        <button class="quiet">Sign out</button>
      </form>
    </header>
  )
}

function render(title: string, body: ComponentChildren, place: Place, status = title): string {
  const { signedIn, result } = place
  const page = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>{`${status} · Markbridge`}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <link rel="stylesheet" href={assetPath('uplot.css')} />
        <link rel="stylesheet" href={assetPath('console.css')} />
        <link rel="modulepreload" href={assetPath('uplot.js')} />
        <script type="module" src={assetPath('console.js')} />
      </head>
      <body>
        {signedIn && <Header {...place} signedIn={signedIn} />}
        <main id="main" aria-label={title} tabIndex={-1}>
          <h1>{title}</h1>
          {result?.isDone === true && <Notice tone="good" role="status" what={result.text} />}
          {result?.isDone === false && <Notice tone="bad" role="alert" what={result.text} />}
          {body}
        </main>
      </body>
    </html>
  )
  return `<!doctype html>${renderToString(page)}`
}
