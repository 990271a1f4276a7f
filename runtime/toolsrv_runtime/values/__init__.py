"""Values as they stand in text: numbers, dates, clock times, units, nationalities."""
