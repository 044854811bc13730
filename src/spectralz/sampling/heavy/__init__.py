"""Heavy states: quenches, pools of states found, and the search for the heaviest of all."""
