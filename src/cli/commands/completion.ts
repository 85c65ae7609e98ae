import { Argument, type Command } from 'commander'

const help = `
Examples:
  markbridge completion bash > ~/.markbridge-completion
  echo '. ~/.markbridge-completion' >> ~/.bashrc
  markbridge completion zsh > "\${fpath[1]}/_markbridge"
  markbridge completion fish > ~/.config/fish/completions/markbridge.fish`

/** Adds `completion <shell>`: prints what makes a shell complete the commands and options of this version. */
export function addCompletion(command: Command): void {
  command
    .addArgument(new Argument('<shell>', 'shell to complete in').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', help)
    .action((shell: keyof typeof scripts) => console.log(scripts[shell](wordsOf(command.parent ?? command))))
}

/** A function of sh that prints the words that may follow those it is given. */
function wordsOf(program: Command): string {
  const commands = belowOf(program)
  const paths = commands.map(({ path }) => `"${path}"`).join('|')
  const cases = commands.map(({ path, words }) => `    "${path}") echo "${words.join(' ')}" ;;`)
  const values = commands.flatMap(({ path, choices }) =>
    choices.map(([option, words]) => `    "${path} ${option}") echo "${words.join(' ')}"; return ;;`),
  )
  const taking = [...new Set(commands.flatMap(({ valued }) => valued))].join('|')
  return `_markbridge_words() {
  at=markbridge word=
  for word in "$@"; do
    case "$at $word" in ${paths}) at="$at $word" ;; esac
  done
  case "$at $word" in
${values.join('\n')}
  esac
  case "$word" in ${taking}) return ;; esac
  case "$at" in
${cases.join('\n')}
  esac
}`
}

/** What may follow a command, and its options that take a value: those of `choices` one of several words. */
interface Completed {
  readonly path: string
  readonly words: readonly string[]
  readonly valued: readonly string[]
  readonly choices: readonly (readonly [option: string, words: readonly string[]])[]
}

/** A command and all below it, each with its subcommands, the choices of its arguments, and its options. */
function belowOf(command: Command, before = ''): Completed[] {
  const path = `${before}${command.name()}`
  const places = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
  const options = command.options.flatMap(({ long }) => long ?? [])
  const words = [...command.commands.map((one) => one.name()), ...places, ...options, '--help']
  const valued = command.options.flatMap(({ long, required }) => (required && long ? [long] : []))
  const choices = command.options.flatMap(({ long, argChoices }) =>
    long && argChoices ? [[long, argChoices] as const] : [],
  )
  return [{ path, words, valued, choices }, ...command.commands.flatMap((one) => belowOf(one, `${path} `))]
}

const scripts = {
  bash: (words: string) => `${words}
_markbridge() {
  local given=("\${COMP_WORDS[@]:1:COMP_CWORD-1}")
  COMPREPLY=($(compgen -W "$(_markbridge_words "\${given[@]}")" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _markbridge markbridge`,
  zsh: (words: string) => `#compdef markbridge
${words}
_markbridge() {
  compadd -- \${=$(_markbridge_words \${words[2,CURRENT-1]})}
  _files
}
if [ "$funcstack[1]" = _markbridge ]; then _markbridge "$@"; else compdef _markbridge markbridge; fi`,
  fish: (words: string) => `function __markbridge_words
  set -l given (commandline -opc)
  sh -c '${words}
_markbridge_words "$@"' sh $given[2..] | string split " "
end
complete -c markbridge -n "__markbridge_words | string match -qv -- '--*'" -f
complete -c markbridge -a "(__markbridge_words)"`,
} as const
