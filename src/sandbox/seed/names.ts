/** A list that is never empty. */
export type Names = readonly [string, ...string[]]

/** Splits a line of names at the commas. */
function names(text: string): Names {
  const [first = '', ...others] = text.split(',').map((name) => name.trim())
  return [first, ...others]
}

/** Given names of girls in the synthetic school. */
export const girls = names(`
  Olivia, Amelia, Isla, Ava, Ivy, Freya, Lily, Florence, Mia, Willow, Rosie, Sophia, Aisha, Grace, Evie,
  Zara, Poppy, Maya, Charlotte, Ella, Daisy, Phoebe, Harper, Sienna, Alice, Nia, Maryam, Ayesha, Erin,
  Bonnie, Hana, Leila, Matilda, Thea, Niamh, Zofia
`)

/** Given names of boys in the synthetic school. */
export const boys = names(`
  Noah, Oliver, George, Arthur, Muhammad, Leo, Harry, Oscar, Archie, Henry, Theodore, Freddie, Jack,
  Charlie, Theo, Alfie, Jacob, Thomas, Finley, Arlo, William, Lucas, Roman, Tommy, Isaac, Teddy, Rafe,
  Yusuf, Ibrahim, Luca, Dylan, Rhys, Kofi, Jakub, Arjun, Seán
`)

/** Family names of the synthetic school; some test escaping, accents and length. */
export const surnames = names(`
  Smith, Jones, Taylor, Brown, Williams, Wilson, Johnson, Davies, Patel, Robinson, Wright, Thompson, Evans,
  Walker, White, Roberts, Green, Hall, Wood, Jackson, Clarke, O'Neill, Khan, Hughes, Ahmed, Begum,
  Mitchell, Carter, Ali, Bell, O'Brien, Kelly, Singh, Kaur, Nowak, Kowalska, Murphy, Fernández, Müller,
  Okafor, Mensah, Nguyễn, Chen, Wong, Ferreira, Smith-Jones, Featherstonehaugh, De la Cruz, MacDonald,
  Ó Súilleabháin, Popescu, Rossi, Yılmaz
`)

/** Streets of the synthetic town. */
export const streets = names(`
  Mill Lane, Station Road, Church Street, Victoria Avenue, Orchard Close, The Green, Park View,
  Kingfisher Way, Chapel Hill, Meadow Rise, Canal Walk, Old Forge Court
`)
