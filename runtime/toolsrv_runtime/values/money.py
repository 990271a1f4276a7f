"""Currencies as people write them, as alternatives of regular expressions."""

NAMES = (
    r"(?:(?:(?:us|american|canadian|australian|hong kong|new zealand|singapore) )?dollars?"
    r"|euros?|(?:british )?pounds?(?: sterling)?|(?:japanese )?yen|(?:swiss )?francs?"
    r"|(?:indian )?rupees?|(?:chinese )?yuan|(?:mexican )?pesos?"
    r"|(?:swedish |norwegian |danish )?(?:krona|kronor|krone|kroner)|zlot(?:y|ys)|(?:south korean )?won"
    r"|(?:[a-z]+(?:ese|ian|ish|an|i) )?(?:dongs?|bahts?|rands?|reais|she[kq]els?|liras?|dirhams?"
    r"|ri(?:y)?als?|ringgits?|rupiahs?|forints?|korunas?|hryvnias?|nairas?|cedis?|shillings?|takas?"
    r"|kyats?|tugriks?|tenges?|dinars?|dirams?|roubles?|rubles?|quetzals?|lempiras?|birrs?|kwachas?"
    r"|bolivianos?|guaran[ií]s?|leva?|koruny))"
)
"""Names of currencies, of a country or without one."""

COMMON = r"(?:[€$£]|(?:usd|eur|gbp|chf|dollars?|euros?|pounds?|francs?|bucks|quid)\b)"
"""What stands before or behind an amount of money where it is told at all."""
